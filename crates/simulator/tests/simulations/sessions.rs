//! Users in a closed loop.

use flowstart_simulator::{Outcome, Reply, SessionConfig, Simulation, SimulationConfig, Stop, Workload};
use flowstart_units::{Bytes, Span, Time};

const RTT: Span = Span::from_millis(100);

fn reply(think_ms: u64, bytes: u64, ends_page: bool) -> Reply {
    Reply { think: Span::from_millis(think_ms), bytes: Bytes::new(bytes), ends_page }
}

fn run(persistent: bool, replies: Vec<Reply>) -> Outcome {
    // One packet per reply takes no time on this link beside the propagation.
    let links = vec![crate::common::link(100_000, RTT / 2, None)];
    let flow = crate::common::tcp_flow(Workload::Greedy, RTT);
    let session = SessionConfig { flow, request_delay: RTT / 2, persistent, replies };
    let stop = Stop::WhenComplete(Time::ZERO + Span::from_secs(100));
    let config = SimulationConfig { sessions: vec![session], ..crate::common::simulation(links, vec![], stop) };
    Simulation::new(&config, ()).unwrap().run().0
}

/// Milliseconds, rounded, at which pages began and were done.
fn pages(outcome: &Outcome) -> Vec<(u64, u64)> {
    let ms = |time: Time| (time.since(Time::ZERO).as_nanos() + 500_000) / 1_000_000;
    outcome.sessions[0].pages.iter().map(|page| (ms(page.began), ms(page.done))).collect()
}

#[test]
fn the_next_request_leaves_after_the_last_reply_is_there_and_the_user_has_thought() {
    let replies = vec![reply(50, 1000, false), reply(0, 1000, true), reply(1000, 1000, true)];
    for persistent in [false, true] {
        // Each reply: half a round trip for the request, half for the packet. (These connections
        // open without a handshake.)
        let outcome = run(persistent, replies.clone());
        assert_eq!(pages(&outcome), [(50, 250), (1250, 1350)], "persistent {persistent}");
        assert_eq!(outcome.flows.len(), if persistent { 1 } else { 3 });
        let page = outcome.sessions[0].pages[0];
        assert_eq!((page.bytes, page.replies), (Bytes::new(2000), 2));
        assert!(outcome.ended < Time::ZERO + Span::from_secs(2), "nothing is outstanding");
    }
}

#[test]
fn a_session_whose_end_is_not_reached_counts_its_complete_pages_only() {
    let outcome = run(true, vec![reply(0, 1000, true), reply(200_000, 1000, true)]);
    assert_eq!(outcome.sessions[0].pages.len(), 1);
}

#[test]
fn a_session_without_replies_is_refused() {
    let links = vec![crate::common::link(10, RTT / 2, None)];
    let flow = crate::common::tcp_flow(Workload::Greedy, RTT);
    let session = SessionConfig { flow, request_delay: Span::ZERO, persistent: false, replies: vec![] };
    let stop = Stop::At(Time::ZERO);
    let config = SimulationConfig { sessions: vec![session], ..crate::common::simulation(links, vec![], stop) };
    assert_eq!(config.validate().unwrap_err().place, "sessions[0].replies");
}

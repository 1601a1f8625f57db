//! Transfers over an imagined link in virtual time, by the stacks of others with the algorithms of
//! this project, beside the simulator's transport with the same algorithms over the same path.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(feature = "quinn")]
mod cubic;

use flowstart_network::{LinkConfig, QueueConfig, RateSchedule};
use flowstart_quinn::congestion::{ControllerConfig, ExitReason};
use flowstart_quinn::contestant;
use flowstart_simulator::{Access, FlowConfig, Simulation, SimulationConfig, Stop, TcpConfig, Traffic, Workload};
use flowstart_transport::{ReceiverConfig, SenderConfig};
use flowstart_units::{Bytes, Rate, Span, Time};

/// The bottleneck; the way back has no queue.
#[derive(Clone, Copy, Debug)]
struct Path {
    mbps: u64,
    rtt: Duration,
    /// Packets that wait at most.
    buffer: usize,
    /// One in so many packets is lost (0: none).
    loss: u64,
    /// Which are lost at random follows from this; `None`: every so many.
    seed: Option<u64>,
    /// UDP payload of the first packets in bytes; the path takes 1452.
    mtu: u16,
    /// Bytes to transfer.
    size: usize,
}

const LONG: Path =
    Path { mbps: 20, rtt: Duration::from_millis(50), buffer: 1000, loss: 0, seed: None, mtu: 1452, size: 4_000_000 };
/// A buffer of about a bandwidth-delay product.
const SHORT: Path = Path { buffer: 85, ..LONG };
const LOSSY: Path = Path { loss: 300, size: 20_000_000, ..LONG };
/// Losses so frequent that windows have ten packets and less.
const SMALL: Path = Path { loss: 40, size: 3_000_000, ..LONG };
/// So fast that the transfer is over before a start is.
const FAST: Path = Path { mbps: 500, buffer: 5000, size: 2_000_000, ..LONG };

/// Bytes of IPv4 and UDP around a packet.
const HEADERS: u64 = 28;

/// One direction.
struct Pipe {
    rate: Option<Rate>,
    delay: Duration,
    buffer: usize,
    loss: u64,
    seed: Option<u64>,
    count: u64,
    /// When what waits is transmitted.
    waiting: VecDeque<Duration>,
    free: Duration,
    most: usize,
}

impl Pipe {
    fn new(rate: Option<Rate>, delay: Duration, buffer: usize, loss: u64, seed: Option<u64>) -> Self {
        Self { rate, delay, buffer, loss, seed, count: 0, waiting: VecDeque::new(), free: Duration::ZERO, most: 0 }
    }

    /// When a packet that is sent now arrives, if it does.
    fn pass(&mut self, now: Duration, bytes: usize) -> Option<Duration> {
        self.count += 1;
        let drawn = self.seed.map_or(self.count, |seed| mixed(seed ^ mixed(self.count)));
        if self.loss > 0 && drawn.is_multiple_of(self.loss) {
            return None;
        }
        let Some(rate) = self.rate else { return Some(now + self.delay) };
        while self.waiting.front().is_some_and(|out| *out <= now) {
            self.waiting.pop_front();
        }
        if self.waiting.len() >= self.buffer {
            return None;
        }
        let time = rate.transmission_time(Bytes::new(bytes as u64 + HEADERS));
        self.free = self.free.max(now) + Duration::from_nanos(time.as_nanos());
        self.waiting.push_back(self.free);
        self.most = self.most.max(self.waiting.len());
        Some(self.free + self.delay)
    }
}

/// The output of SplitMix64 for a state.
fn mixed(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What a transfer came to.
#[derive(Debug)]
#[expect(dead_code, reason = "shown where a comparison fails")]
struct Done {
    /// From the end of the handshake until the last byte was read.
    took: Duration,
    exit: Option<ExitReason>,
    /// Most packets that waited at the bottleneck.
    queue: usize,
    lost: u64,
    /// Full packets at the end, in bytes.
    mtu: u32,
}

/// Certificates of the two ends.
struct Ends {
    server: rustls::ServerConfig,
    client: rustls::ClientConfig,
}

fn ends() -> Ends {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ends { server, client }
}

/// Bytes that are easy to make and not all the same.
fn pattern(at: usize) -> u8 {
    (at % 251) as u8
}

/// A client that sends so many bytes to a server, with one of the stacks. What the two stacks call
/// differently stands in the arguments.
macro_rules! stack {
    (
        $module:ident, $stack:ident, $factory:ident, $controller:ident;
        new: |$config:ident, $server:ident| $new:expr;
        from: |$address:ident| [$($from:expr),*];
        most: $most:expr;
        state: |$inspected:ident| ($state:expr, $lost:expr);
    ) => {
        mod $module {
            use std::net::SocketAddr;

            use $stack::congestion::ControllerFactory;
            use $stack::crypto::rustls::{QuicClientConfig, QuicServerConfig};
            use $stack::{
                ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event,
                ServerConfig, StreamEvent, StreamId, TransportConfig, VarInt,
            };

            use super::*;

            /// One of the two ends.
            struct End {
                endpoint: Endpoint,
                connection: Option<(ConnectionHandle, Connection)>,
                other: SocketAddr,
                ready: bool,
                readable: bool,
            }

            impl End {
                fn new($server: Option<Arc<ServerConfig>>, other: &str, seed: u8) -> Self {
                    let mut config = EndpointConfig::default();
                    config.rng_seed(Some([seed; 32]));
                    let $config = Arc::new(config);
                    let other = other.parse().unwrap();
                    Self { endpoint: $new, connection: None, other, ready: false, readable: false }
                }

                fn hear(&mut self, now: Instant, data: &[u8]) {
                    let $address = self.other;
                    let mut answer = Vec::new();
                    match self.endpoint.handle(now, $($from,)* None, data.into(), &mut answer) {
                        Some(DatagramEvent::NewConnection(incoming)) => {
                            let accepted = self.endpoint.accept(incoming, now, &mut answer, None);
                            self.connection = Some(accepted.map_err(|error| format!("{:?}", error.cause)).unwrap());
                        }
                        Some(DatagramEvent::ConnectionEvent(_, event)) => {
                            if let Some((_, connection)) = &mut self.connection {
                                connection.handle_event(event);
                            }
                        }
                        Some(DatagramEvent::Response(_)) | None => {}
                    }
                    self.exchange();
                }

                fn exchange(&mut self) {
                    let Some((handle, connection)) = &mut self.connection else { return };
                    while let Some(event) = connection.poll_endpoint_events() {
                        if let Some(event) = self.endpoint.handle_event(*handle, event) {
                            connection.handle_event(event);
                        }
                    }
                    while let Some(event) = connection.poll() {
                        match event {
                            Event::Connected => self.ready = true,
                            Event::Stream(StreamEvent::Opened { .. } | StreamEvent::Readable { .. }) => {
                                self.readable = true;
                            }
                            Event::ConnectionLost { reason } => panic!("{reason}"),
                            _ => {}
                        }
                    }
                }

                fn connection(&mut self) -> &mut Connection {
                    &mut self.connection.as_mut().unwrap().1
                }

                /// All datagrams that may leave now.
                fn transmit(&mut self, now: Instant) -> Vec<Vec<u8>> {
                    let mut all = Vec::new();
                    let Some((_, connection)) = &mut self.connection else { return all };
                    let mut buffer = Vec::new();
                    while let Some(transmit) = connection.poll_transmit(now, $most, &mut buffer) {
                        let each = transmit.segment_size.unwrap_or(transmit.size);
                        all.extend(buffer[..transmit.size].chunks(each).map(<[u8]>::to_vec));
                        buffer.clear();
                    }
                    all
                }

                fn deadline(&mut self) -> Option<Instant> {
                    self.connection.as_mut()?.1.poll_timeout()
                }
            }

            fn transport(mtu: u16) -> TransportConfig {
                let mut transport = TransportConfig::default();
                let window = VarInt::from_u32(64 << 20);
                transport.initial_mtu(mtu).stream_receive_window(window).receive_window(window).send_window(64 << 20);
                transport
            }

            pub(super) fn transfer(path: Path, config: ControllerConfig) -> Done {
                transfer_with(path, Arc::new(flowstart_quinn::$factory::new(config).unwrap()))
            }

            pub(super) fn transfer_with(path: Path, factory: Arc<dyn ControllerFactory + Send + Sync>) -> Done {
                let size = path.size;
                let ends = ends();
                let crypto = QuicServerConfig::try_from(ends.server).unwrap();
                let mut server = ServerConfig::with_crypto(Arc::new(crypto));
                server.transport_config(Arc::new(transport(path.mtu)));
                let crypto = QuicClientConfig::try_from(ends.client).unwrap();
                let mut client = ClientConfig::new(Arc::new(crypto));
                let mut sending = transport(path.mtu);
                sending.congestion_controller_factory(factory);
                client.transport_config(Arc::new(sending));

                let begun = Instant::now();
                let mut now = Duration::ZERO;
                let mut sender = End::new(None, "10.0.0.2:4433", 1);
                let mut receiver = End::new(Some(Arc::new(server)), "10.0.0.1:5001", 2);
                sender.connection = Some(sender.endpoint.connect(begun, client, sender.other, "localhost").unwrap());
                let rate = Rate::from_mbps(path.mbps);
                let pipe = |rate, loss| Pipe::new(rate, path.rtt / 2, path.buffer, loss, path.seed);
                // To the receiver, to the sender.
                let mut pipes = [pipe(Some(rate), path.loss), pipe(None, 0)];
                let mut flying: BTreeMap<(Duration, u64), (usize, Vec<u8>)> = BTreeMap::new();
                let mut number = 0;
                let (mut stream, mut written, mut read, mut since): (Option<StreamId>, _, _, _) = (None, 0, 0, None);
                loop {
                    if sender.ready && stream.is_none() {
                        stream = sender.connection().streams().open(Dir::Uni);
                        since = Some(now);
                    }
                    if let Some(id) = stream {
                        while written < size {
                            let data: Vec<u8> = (written..size.min(written + 65536)).map(pattern).collect();
                            match sender.connection().send_stream(id).write(&data) {
                                Ok(taken) => written += taken,
                                Err(_) => break,
                            }
                            if written == size {
                                sender.connection().send_stream(id).finish().unwrap();
                            }
                        }
                    }
                    if std::mem::take(&mut receiver.readable) {
                        let connection = receiver.connection();
                        let id = StreamId::new($stack::Side::Client, Dir::Uni, 0);
                        let mut reading = connection.recv_stream(id);
                        if let Ok(mut chunks) = reading.read(true) {
                            while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                                let right = chunk.bytes.iter().enumerate().all(|(at, byte)| *byte == pattern(read + at));
                                assert!(right, "every byte is as it was");
                                read += chunk.bytes.len();
                            }
                            let _ = chunks.finalize();
                        }
                    }
                    if read == size {
                        break;
                    }
                    for (way, end) in [&mut sender, &mut receiver].into_iter().enumerate() {
                        for data in end.transmit(begun + now) {
                            if let Some(at) = pipes[way].pass(now, data.len()) {
                                flying.insert((at, number), (way, data));
                                number += 1;
                            }
                        }
                    }
                    let arrives = flying.first_key_value().map(|((at, _), _)| *at);
                    let timers = [sender.deadline(), receiver.deadline()].into_iter().flatten();
                    let timers = timers.map(|at| at.saturating_duration_since(begun)).min();
                    let next = arrives.into_iter().chain(timers).min().expect("something is to happen");
                    now = next.max(now);
                    assert!(now < Duration::from_secs(300), "it never ends: {read} of {size}");
                    while let Some(first) = flying.first_entry().filter(|first| first.key().0 <= now) {
                        let (way, data) = first.remove();
                        [&mut receiver, &mut sender][way].hear(begun + now, &data);
                    }
                    for end in [&mut sender, &mut receiver] {
                        if end.deadline().is_some_and(|at| at <= begun + now) {
                            end.connection().handle_timeout(begun + now);
                            end.exchange();
                        }
                    }
                }
                let $inspected = sender.connection();
                let lost = $lost;
                let state = $state.clone_box().into_any().downcast::<flowstart_quinn::$controller>().ok();
                Done {
                    took: now - since.unwrap(),
                    exit: state.as_ref().and_then(|state| state.start_exit()).map(|exit| exit.reason),
                    queue: pipes[0].most,
                    lost,
                    mtu: state.map_or(0, |state| state.controller().mss()),
                }
            }
        }
    };
}

#[cfg(feature = "quinn")]
stack! {
    quinn, quinn_proto, QuinnFactory, QuinnController;
    new: |config, server| Endpoint::new(config, server, true, None);
    from: |address| [address, None];
    most: 10;
    state: |connection| (connection.congestion_state(), connection.stats().path.lost_packets);
}

#[cfg(feature = "noq")]
stack! {
    noq, noq_proto, NoqFactory, NoqController;
    new: |config, server| Endpoint::new(config, server, true);
    from: |address| [noq_proto::FourTuple::from_remote(address)];
    most: std::num::NonZeroUsize::new(10).unwrap();
    state: |connection| (
        connection.congestion_state(noq_proto::PathId::ZERO).unwrap(),
        connection.path_stats(noq_proto::PathId::ZERO).unwrap().lost_packets
    );
}

/// The same by the simulator's transport, which delays ACKs as QUIC receivers do: one for two
/// packets.
fn simulated(path: Path, controller: ControllerConfig) -> Duration {
    let rtt = Span::from_nanos(u64::try_from(path.rtt.as_nanos()).unwrap());
    let queue = QueueConfig::drop_tail(path.buffer as u64);
    let mut link = LinkConfig::new(RateSchedule::Constant(Rate::from_mbps(path.mbps)), rtt / 2, queue);
    if path.loss > 0 {
        link.loss = flowstart_network::LossConfig::Periodic { every: path.loss };
    }
    let sender = SenderConfig { handshake: false, handshake_rtt: Some(rtt), ..SenderConfig::default() };
    let receiver = ReceiverConfig { ack_every: 2, ..ReceiverConfig::default() };
    let workload = Workload::Sized(Bytes::new(path.size as u64));
    let flow = FlowConfig {
        forward: vec![0],
        reverse: vec![],
        access: Access { rate: Rate::UNLIMITED, delay: Span::ZERO },
        tail_delay: Span::ZERO,
        return_delay: rtt / 2,
        start: Time::ZERO,
        traffic: Traffic::Tcp(Box::new(TcpConfig { controller, sender, receiver, workload })),
        group: 0,
        place: Default::default(),
    };
    let stop = Stop::WhenComplete(Time::ZERO + Span::from_secs(300));
    let config = SimulationConfig {
        links: vec![link],
        ways: vec![],
        flows: vec![flow],
        arrivals: vec![],
        sessions: vec![],
        stop,
        seed: 1,
        run: 0,
    };
    let (outcome, ()) = Simulation::new(&config, ()).unwrap().run();
    let flow = &outcome.flows[0];
    Duration::from_nanos(flow.completed.unwrap().since(flow.first_data).as_nanos())
}

/// What Careful Resume remembers of this path.
fn config(start: &str, avoidance: &str, path: Path) -> ControllerConfig {
    let mut config = contestant(start, avoidance).unwrap();
    if let flowstart_quinn::congestion::StartConfig::CarefulResume(resume) = &mut config.start {
        resume.saved_cwnd = Some(Bytes::new(path.mbps * 1_000_000 / 8 * path.rtt.as_millis() as u64 / 1000));
        resume.saved_rtt = Some(Span::from_nanos(u64::try_from(path.rtt.as_nanos()).unwrap()));
    }
    config
}

/// A transfer by one of the stacks.
type Run = fn(Path, ControllerConfig) -> Done;

/// Every start that a window carries.
const STARTS: [&str; 6] = ["slow_start", "hystart", "hystart++", "search", "limited_slow_start", "careful_resume"];

/// How long a transfer takes, as a share of the time that it takes in the simulator.
fn compare(run: Run, start: &str, avoidance: &str) {
    for (name, path) in [("long queue", LONG), ("short queue", SHORT), ("losses", LOSSY), ("fast", FAST)] {
        // After the first loss all are the same.
        if path.loss > 0 && start != "slow_start" && avoidance == "cubic" {
            continue;
        }
        let config = config(start, avoidance, path);
        let simulated = simulated(path, config.clone());
        let done = run(path, config);
        let ratio = done.took.as_secs_f64() / simulated.as_secs_f64();
        println!("{start:>20}+{avoidance}, {name:11} {ratio:.3} of {simulated:?}; {done:?}");
        // Half a round trip more or less is much of a short transfer.
        let most = match (path.size == FAST.size, start) {
            // One of two jumps: the first spreads the packets that the second goes by.
            (true, "suss") => 1.4,
            (true, _) => 1.25,
            _ => 1.15,
        };
        assert!((0.85..=most).contains(&ratio), "{start}+{avoidance}, {name}: {ratio} {done:?}");
    }
}

#[cfg(feature = "quinn")]
#[test]
fn quinn_takes_as_long_as_the_simulator_with_every_start() {
    for start in STARTS {
        compare(quinn::transfer, start, "cubic");
    }
}

#[cfg(feature = "noq")]
#[test]
fn noq_takes_as_long_as_the_simulator_with_every_start() {
    for start in STARTS.iter().chain(&["suss", "rapid_start", "bbr_start"]) {
        compare(noq::transfer, start, "cubic");
    }
}

#[cfg(feature = "noq")]
#[test]
fn adaptive_delay_control_in_noq() {
    for start in ["hystart++", "search"] {
        compare(noq::transfer, start, "delay_target");
    }
}

/// How long a fast path takes.
fn took(run: Run, start: &str) -> f64 {
    run(FAST, config(start, "cubic", FAST)).took.as_secs_f64()
}

#[cfg(feature = "quinn")]
#[test]
fn a_flow_that_remembers_its_path_is_much_faster_in_quinn() {
    let (remembers, not) = (took(quinn::transfer, "careful_resume"), took(quinn::transfer, "slow_start"));
    assert!(remembers < 0.5 * not, "{remembers} {not}");
}

#[cfg(feature = "noq")]
#[test]
fn flows_that_are_faster_in_the_simulator_are_faster_in_noq() {
    let standard = took(noq::transfer, "slow_start");
    for (start, most) in [("careful_resume", 0.5), ("suss", 0.9), ("rapid_start", 0.8)] {
        let took = took(noq::transfer, start);
        assert!(took < most * standard, "{start}: {took} {standard}");
    }
}

/// A window of so many packets lets so many leave, which is much of a small one.
#[test]
fn small_windows_take_as_long_as_in_the_simulator() {
    for avoidance in ["reno", "cubic"] {
        #[cfg(feature = "quinn")]
        small(quinn::transfer, avoidance);
        #[cfg(feature = "noq")]
        small(noq::transfer, avoidance);
    }
}

fn small(run: Run, avoidance: &str) {
    let simulated = simulated(SMALL, config("slow_start", avoidance, SMALL));
    let done = run(SMALL, config("slow_start", avoidance, SMALL));
    let ratio = done.took.as_secs_f64() / simulated.as_secs_f64();
    println!("slow_start+{avoidance}, small windows {ratio:.3} of {simulated:?}; {done:?}");
    assert!((0.85..=1.15).contains(&ratio), "{avoidance}: {ratio} {done:?}");
}

/// The MTU is found while the transfer runs, in steps, and what is counted in packets follows.
#[test]
fn a_stack_that_finds_the_mtu_first_takes_as_long() {
    let path = Path { mtu: 1200, ..LONG };
    #[cfg(feature = "quinn")]
    found(quinn::transfer, path);
    #[cfg(feature = "noq")]
    found(noq::transfer, path);
}

fn found(run: Run, path: Path) {
    for start in STARTS {
        let simulated = simulated(path, config(start, "cubic", path));
        let done = run(path, config(start, "cubic", path));
        let ratio = done.took.as_secs_f64() / simulated.as_secs_f64();
        assert_eq!(done.mtu, 1452, "{start}");
        assert!((0.9..=1.1).contains(&ratio), "{start}: {ratio} {done:?}");
    }
}

/// 3 MB with a loss of 2 % at random, by the algorithms here and by quinn's own, over the same
/// losses; and by quinn's CUBIC with single rules of Linux's.
#[cfg(feature = "quinn")]
#[test]
#[ignore = "a table of many transfers, for the page"]
fn table_of_small_windows_with_random_losses() {
    use cubic::Rules;
    use quinn_proto::congestion::{CubicConfig, NewRenoConfig};
    let first: u64 = std::env::var("FLOWSTART_FIRST_SEED").map_or(1, |text| text.parse().unwrap());
    let path = Path { rtt: Duration::from_millis(40), loss: 50, size: 3_000_000, ..LONG };
    let times = |run: &dyn Fn(Path) -> Done| -> Vec<f64> {
        (first..first + 20).map(|seed| run(Path { seed: Some(seed), ..path }).took.as_secs_f64()).collect()
    };
    let ours = |name: &str| times(&|path| quinn::transfer(path, config("slow_start", name, path)));
    let rules = |not_ahead, whole, later| {
        let rules = Rules { not_ahead, whole, later };
        (format!("quinn's cubic, {rules:?}"), times(&|path| quinn::transfer_with(path, Arc::new(rules))))
    };
    let own = times(&|path| quinn::transfer_with(path, Arc::new(CubicConfig::default())));
    let reno = times(&|path| quinn::transfer_with(path, Arc::new(NewRenoConfig::default())));
    let rows = [
        ("cubic".to_owned(), ours("cubic"), &own),
        ("reno".to_owned(), ours("reno"), &reno),
        ("quinn's reno".to_owned(), reno.clone(), &reno),
        ("quinn's cubic".to_owned(), own.clone(), &own),
    ];
    let variants = [(false, false, false), (true, false, false), (true, true, false), (true, true, true)];
    let variants = variants.map(|(ahead, whole, later)| rules(ahead, whole, later));
    for (name, values, against) in
        rows.iter().map(|(name, values, own)| (name, values, *own)).chain(variants.iter().map(|(n, v)| (n, v, &own)))
    {
        let ratios: Vec<f64> = values.iter().zip(against).map(|(one, other)| one / other).collect();
        let [(mean, half), (ratio, within)] = [values, &ratios].map(|values| {
            let count = values.len() as f64;
            let mean = values.iter().sum::<f64>() / count;
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
            // Student's t with 19 degrees of freedom.
            (mean, 2.093 * (variance / count).sqrt())
        });
        println!("{name}: {mean:.2} +- {half:.2} s, {ratio:.3} +- {within:.3} of quinn's own");
    }
}

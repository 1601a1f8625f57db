//! Plain quinn endpoints on this machine with the algorithms of flowstart, as the example has it.

#![cfg(feature = "quinn")]

#[path = "../examples/endpoint.rs"]
mod endpoint;

/// Every start that quinn can carry.
const STARTS: [&str; 7] =
    ["slow_start", "built_in", "hystart", "hystart++", "search", "limited_slow_start", "careful_resume"];

#[tokio::test(flavor = "current_thread")]
async fn a_plain_server_receives_every_byte_from_a_client_with_any_start() {
    for start in STARTS {
        let sent = endpoint::transfer(start, "cubic", 3_000_000).await.unwrap();
        assert_eq!((sent.received, sent.sum), (3_000_000, endpoint::sum(3_000_000)), "{start}");
        assert!(sent.window >= 2 * 1200, "{start}: {sent:?}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn what_cannot_run_is_refused_before_anything_is_sent() {
    let refused = endpoint::transfer("paced_chirping", "cubic", 1).await.unwrap_err();
    assert!(refused.to_string().contains("sets the time at which each packet leaves"), "{refused}");
}

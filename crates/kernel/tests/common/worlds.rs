//! Hosts of an emulated world that carry Quick-Start's options.

use flowstart_emulator::{World, WorldConfig};
use flowstart_kernel::attach_host;
use flowstart_network::{LinkConfig, QueueConfig, QuickStartHop, RateSchedule};
use flowstart_quick_start::router::AdmissionConfig;
use flowstart_units::{Rate, Span};

/// The congestion control that asks.
pub(crate) const CONTROL: &str = "fs_quick_start";
/// Name of every host's interface.
pub(crate) const DEVICE: &str = "fs-0";

/// 100 Mbit/s and 60 ms.
pub(crate) fn path(hop: QuickStartHop) -> WorldConfig {
    let half = Span::from_millis(30);
    let rate = RateSchedule::Constant(Rate::from_mbps(100));
    WorldConfig::pair(
        LinkConfig { quick_start: hop, ..LinkConfig::new(rate, half, QueueConfig::drop_tail(1000)) },
        half,
    )
}

/// Its link's router grants all of it.
pub(crate) fn aware() -> QuickStartHop {
    QuickStartHop::Aware(AdmissionConfig::paper(Rate::from_mbps(100)))
}

/// A world whose hosts carry options.
pub(crate) fn world(config: WorldConfig) -> World {
    let world = World::start(config).unwrap();
    for host in world.hosts() {
        host.run(|| attach_host(DEVICE, None)).unwrap().unwrap();
    }
    world
}

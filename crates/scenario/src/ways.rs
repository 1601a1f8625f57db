//! Ways in parallel to a link, over which connections are spread.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use flowstart_network::MediumConfig;
use flowstart_units::Span;

use super::{Buffer, JitterSpec, LossSpec, QueueSpec, RateSpec};

/// Another way in parallel to a link: what is said of it differs from that link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaySpec {
    /// Capacity; default: that of the link it is in parallel to, like all that follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<RateSpec>,
    /// One-way propagation delay. Round-trip times are those of the first way; this one's are
    /// longer or shorter by the difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// Buffer; one in BDP is of this way's capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Buffer>,
    /// Queue discipline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueSpec>,
    /// Packets lost on arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<LossSpec>,
    /// ECN-capable packets marked on arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<LossSpec>,
    /// Random extra delay behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<JitterSpec>,
    /// What kind of link it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medium: Option<MediumConfig>,
}

/// The name of a way in parallel to a link: the link's with the way's number, from 2.
#[must_use]
pub fn name_of_way(link: &str, place: usize) -> String {
    format!("{link}-{}", place + 2)
}

#[cfg(test)]
mod tests {
    use flowstart_network::QueueConfig;
    use flowstart_units::Rate;

    use super::*;
    use crate::Scenario;

    const PATH: &str = "[path]\ncapacity = \"40 Mbit/s\"\nrtt = \"20 ms\"\nreverse_capacity = \"5 Mbit/s\"\n\
                        ways = [{ capacity = \"10 Mbit/s\", delay = \"15 ms\" }, { queue = \"fq_codel\" }]\n";

    fn compiled(text: &str) -> crate::Compiled {
        Scenario::parse("ways", text).unwrap_or_else(|error| panic!("{error}")).simulation(0).unwrap()
    }

    fn refused(text: &str) -> String {
        Scenario::parse("ways", text).unwrap_err().to_string()
    }

    #[test]
    fn ways_are_links_beside_the_bottleneck_with_what_they_say_and_the_rest_of_it() {
        let compiled = compiled(&format!("{PATH}[[flow]]\n"));
        assert_eq!(compiled.links, ["bottleneck", "reverse", "bottleneck-2", "bottleneck-3"]);
        let simulation = &compiled.simulation;
        assert_eq!(simulation.ways, [vec![0, 2, 3]]);
        let [first, _, second, third] = simulation.links.as_slice() else { panic!() };
        assert_eq!((second.rate.peak(), second.delay), (Rate::from_mbps(10), Span::from_millis(15)));
        assert_eq!((third.rate.peak(), third.delay), (first.rate.peak(), first.delay));
        assert!(matches!(third.queue, QueueConfig::FqCodel(_)));
        // A buffer in BDP is of the way's own capacity: 100 kB and 25 kB.
        let bytes = |queue: QueueConfig| match queue {
            QueueConfig::DropTail(limit) => limit.bytes.or(limit.packets.map(|packets| packets * 1500)),
            _ => None,
        };
        let [first, second] = [first, second].map(|link| bytes(link.queue).unwrap());
        assert!(first.abs_diff(100_000) < 3000 && second.abs_diff(25_000) < 3000, "{first} {second}");
        let flow = &simulation.flows[0];
        assert_eq!((flow.forward.as_slice(), flow.reverse.as_slice()), ([0].as_slice(), [1].as_slice()));
    }

    #[test]
    fn flows_may_say_their_ways_from_one_on_and_hosts_by_name() {
        let text = "[[flow]]\nways = [1, 3]\nfrom = \"a\"\n[[flow]]\nfrom = \"b\"\nto = \"a\"\n[[udp]]\nrate = \"1 Mbit/s\"\nway = 2\n";
        let flows = compiled(&format!("{PATH}{text}")).simulation.flows;
        let places: Vec<_> =
            flows.iter().map(|flow| (flow.place.ways.clone(), flow.place.source, flow.place.destination)).collect();
        assert_eq!(places, [(vec![0, 2], Some(0), None), (vec![], Some(1), Some(0)), (vec![1], None, None)]);
    }

    #[test]
    fn a_link_may_have_ways_and_a_flow_may_name_one_of_them() {
        let text = "[[link]]\nname = \"a\"\ncapacity = \"1 Mbit/s\"\ndelay = \"1 ms\"\nways = [{}, { delay = \"3 ms\" }]\n\
                    [[link]]\nname = \"b\"\ncapacity = \"2 Mbit/s\"\ndelay = \"1 ms\"\n\
                    [[flow]]\nforward = [\"b\", \"a\"]\n[[flow]]\nforward = [\"a-3\"]\n";
        let compiled = compiled(text);
        assert_eq!(compiled.links, ["a", "a-2", "a-3", "b"]);
        assert_eq!(compiled.simulation.ways, [[0, 1, 2]]);
        assert_eq!(compiled.simulation.flows[1].forward, [2]);
        let clash = text.replace("\"b\"", "\"a-2\"");
        assert!(refused(&clash).contains("there are two links \"a-2\""), "{}", refused(&clash));
    }

    #[test]
    fn what_makes_no_sense_is_refused_where_it_stands() {
        let no_way = refused(&format!("{PATH}[[flow]]\nways = [4]\n"));
        assert!(no_way.contains("flow[0].ways") && no_way.contains("there is no way 4 on its path; they are 1 to 3"));
        assert!(refused(&format!("{PATH}[[flow]]\nways = [0]\n")).contains("there is no way 0"));
        let many = refused(&format!("{PATH}[[flow]]\nways = [1, 2, 1]\n"));
        assert!(many.contains("flow[0].ways: 3 numbers are more than a flow has connections"), "{many}");
        let none = "[path]\ncapacity = \"1 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\nways = [1]\n";
        assert!(refused(none).contains("no ways in parallel"));
        let own_limit = PATH.replace("queue = \"fq_codel\"", "queue = \"fq_codel\", buffer = \"1 BDP\"");
        let message = refused(&format!("{own_limit}[[flow]]\n"));
        assert!(message.contains("ways[1].buffer") && message.contains("no influence"), "{message}");
    }

    #[test]
    fn a_scenario_with_ways_is_random_and_reads_as_it_is_written() {
        let text = format!("{PATH}[[flow]]\nways = [2]\nto = \"phone\"\n");
        let scenario = Scenario::parse("ways", &text).unwrap();
        assert!(scenario.is_random());
        let written = toml::to_string(&scenario).unwrap();
        assert_eq!(Scenario::parse("again", &written).unwrap(), scenario);
    }
}

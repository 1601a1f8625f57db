//! The ends of every constant's range: the last value that is right and the first that is not.

use flowstart_units::{Rate, Span};

use super::{
    CodelConfig, DropTailConfig, DrrConfig, DualPi2Config, FairQueuingConfig, FqCodelConfig, HostFairnessConfig,
    PieConfig, QueueConfig, RedAdaption, RedConfig, SchRedConfig, StepMarkConfig,
};

/// Checks that each change of the default constants is right, or wrong.
macro_rules! check {
    ($kind:ident, $config:ident: $($field:ident = $value:expr => $right:expr;)*) => {
        $({
            let config = $config { $field: $value, ..$config::default() };
            let found = QueueConfig::$kind(config).validate();
            assert_eq!(found.is_ok(), $right, "{} with {} = {:?}", stringify!($kind), stringify!($field), config.$field);
        })*
    };
}

const TINY: Span = Span::from_nanos(1);

#[test]
fn queues_without_randomness_refuse_what_could_serve_nobody() {
    check!(DropTail, DropTailConfig:
        packets = Some(0) => false; packets = Some(1) => true; bytes = Some(0) => false; bytes = Some(1) => true;);
    let limit = |packets| DropTailConfig { packets: Some(packets), bytes: None };
    check!(StepMark, StepMarkConfig: limit = limit(0) => false; limit = limit(1) => true;);
    check!(FairQueuing, FairQueuingConfig:
        limit = 0 => false; limit = 1 => true; flow_limit = 0 => false; flow_limit = 1 => true;
        quantum = 0 => false; quantum = 1 => true;
        max_rate = Some(Rate::ZERO) => false; max_rate = Some(Rate::from_bps(1)) => true;);
    check!(Drr, DrrConfig: limit = limit(0) => false; limit = limit(1) => true; flow_limit = 0 => false; flow_limit = 1 => true; quantum = 0 => false; quantum = 1 => true;);
    let micros = Span::from_micros;
    check!(Codel, CodelConfig:
        limit = 0 => false; limit = 1 => true;
        interval = micros(2) - TINY => false; interval = micros(2) => true;);
    check!(FqCodel, FqCodelConfig:
        limit = 0 => false; limit = 1 => true; memory = 0 => false; memory = 1 => true;
        drop_batch = 0 => false; drop_batch = 1 => true;
        queues = 0 => false; queues = 1 => true; queues = 65_536 => true; queues = 65_537 => false;
        quantum = 0 => false; quantum = 1 => true;
        interval = micros(2) - TINY => false; interval = micros(2) => true;);
    check!(HostFairness, HostFairnessConfig:
        memory = 0 => false; memory = 1 => true; quantum = 0 => false; quantum = 1 => true;
        interval = micros(2) - TINY => false; interval = micros(2) => true;);
}

/// At 4 GB beside every packet a turn was a millionth of one.
#[test]
fn no_queue_counts_more_beside_a_packet_than_the_longest_packet_has() {
    check!(FairQueuing, FairQueuingConfig: overhead = 65_535 => true; overhead = 65_536 => false;);
    check!(Drr, DrrConfig: overhead = 65_535 => true; overhead = 65_536 => false;);
    check!(Codel, CodelConfig: overhead = 65_535 => true; overhead = 65_536 => false;);
    check!(FqCodel, FqCodelConfig: overhead = 65_535 => true; overhead = 65_536 => false;);
    check!(HostFairness, HostFairnessConfig: overhead = 65_535 => true; overhead = 65_536 => false;);
    check!(SchRed, SchRedConfig: overhead = 65_535 => true; overhead = 65_536 => false;);
    check!(Pie, PieConfig: overhead = 65_535 => true; overhead = 65_536 => false;);
    check!(DualPi2, DualPi2Config: overhead = 65_535 => true; overhead = 65_536 => false;);
}

#[test]
fn controllers_refuse_constants_that_are_no_gains_shares_or_intervals() {
    check!(Pie, PieConfig:
        limit = 0 => false; limit = 1 => true;
        update_interval = Span::ZERO => false; update_interval = TINY => true;
        alpha = -0.001 => false; alpha = 0.0 => true; alpha = f64::INFINITY => false; alpha = f64::NAN => false;
        beta = -0.001 => false; beta = 0.0 => true; beta = f64::INFINITY => false; beta = f64::NAN => false;
        mark_up_to = -0.001 => false; mark_up_to = 0.0 => true; mark_up_to = 1.0 => true; mark_up_to = 1.001 => false;
        idle_decay = -0.001 => false; idle_decay = 0.0 => true; idle_decay = 1.0 => true; idle_decay = 1.001 => false;);
    check!(DualPi2, DualPi2Config:
        limit = 0 => false; limit = 1 => true; memory = Some(0) => false; memory = Some(1) => true;
        update_interval = Span::ZERO => false; update_interval = TINY => true;
        coupling = 0 => false; coupling = 1 => true;
        classic_protection = 0 => true; classic_protection = 100 => true; classic_protection = 101 => false;);
}

#[test]
fn red_refuses_what_is_no_probability_and_thresholds_that_are_one() {
    let above = f64::MIN_POSITIVE;
    check!(Red, RedConfig:
        limit = 0 => false; limit = 1 => true;
        weight = -0.001 => false; weight = 0.0 => true; weight = 1.0 => true; weight = 1.001 => false;
        min = -0.001 => false; min = 0.0 => true; min = 14.999 => true; min = 15.0 => false; min = f64::NAN => false;
        max = f64::INFINITY => false; max = 5.0 => false; max = 5.001 => true;
        max_probability = 0.0 => false; max_probability = above => true;
        max_probability = 1.0 => true; max_probability = 1.001 => false;
        packet_time = Span::ZERO => false; packet_time = TINY => true;
        byte_mode = Some(0) => false; byte_mode = Some(1) => true; byte_mode = None => true;);
    check!(SchRed, SchRedConfig:
        limit = 0 => false; limit = 1 => true; limit = u32::MAX.into() => true; limit = 1 << 32 => false;
        min = 89_999 => true; min = 90_000 => false;
        max = 30_000 => false; max = 30_001 => true; max = u32::MAX.into() => true; max = 1 << 32 => false;
        probability = 0.0 => false; probability = above => true; probability = 1.0 => true; probability = 1.001 => false;
        weight_log = 0 => false; weight_log = 1 => true; weight_log = 31 => true; weight_log = 32 => false;
        packet_time = Span::ZERO => false; packet_time = TINY => true;);
}

#[test]
fn the_adaption_of_red_is_checked_like_its_other_constants() {
    macro_rules! adaption {
        ($($field:ident = $value:expr => $right:expr;)*) => {
            $({
                let adaption = RedAdaption { $field: $value, ..RedAdaption::default() };
                let config = RedConfig { adaptive: Some(adaption), ..RedConfig::default() };
                let found = QueueConfig::Red(config).validate();
                assert_eq!(found.is_ok(), $right, "{} = {:?}", stringify!($field), adaption.$field);
            })*
        };
    }
    adaption!(
        interval = Span::ZERO => false; interval = TINY => true;
        increase = -0.001 => false; increase = 0.0 => true;
        decrease = -0.001 => false; decrease = 0.0 => true; decrease = 1.0 => true; decrease = 1.001 => false;
        lowest = 0.0 => false; lowest = f64::MIN_POSITIVE => true; lowest = 0.5 => true; lowest = 0.501 => false;
        highest = 0.01 => true; highest = 0.009 => false; highest = 1.0 => true; highest = 1.001 => false;
        band_from = -0.001 => false; band_from = 0.0 => true; band_from = 0.6 => true; band_from = 0.601 => false;
        band_to = 0.4 => true; band_to = 0.399 => false; band_to = 1.0 => true; band_to = 1.001 => false;
    );
}

//! Disciplines with random constants.

use proptest::prelude::*;

use super::*;

/// Any discipline, with constants in which much happens to few packets.
pub(super) fn any_queue() -> impl Strategy<Value = QueueConfig> {
    prop_oneof![
        any_simple_queue(),
        any_fair_queue(),
        any_codel(),
        any_red(),
        any_sch_red(),
        any_pie(),
        any_dual_pi2(),
        any_small_queue()
    ]
}

/// Whatever is registered, with few packets of room.
fn any_small_queue() -> impl Strategy<Value = QueueConfig> {
    let known: Vec<QueueConfig> = QueueConfig::NAMES.into_iter().filter_map(QueueConfig::from_name).collect();
    (prop::sample::select(known), 2_u64..40).prop_map(|(config, packets)| config.with_limit(Some(packets), None, 1500))
}

fn any_simple_queue() -> impl Strategy<Value = QueueConfig> {
    let limit = (1_u64..30, proptest::option::of(1_500_u64..40_000))
        .prop_map(|(packets, bytes)| DropTailConfig { packets: Some(packets), bytes });
    let threshold = prop_oneof![
        (0_u64..5_000_000).prop_map(|nanos| Threshold::Sojourn(Span::from_nanos(nanos))),
        (1_u64..20).prop_map(Threshold::Packets),
        (1_u64..20_000).prop_map(Threshold::Bytes),
    ];
    prop_oneof![
        limit.clone().prop_map(QueueConfig::DropTail),
        (threshold, limit, any::<bool>()).prop_map(|(threshold, limit, drop_not_ect)| {
            QueueConfig::StepMark(StepMarkConfig { threshold, limit, drop_not_ect })
        }),
    ]
}

prop_compose! {
    fn any_fair_queue()(
        limit in 1_u64..40,
        flow_limit in 1_u64..20,
        quantum in 100_u32..4_000,
        buckets in 0_u32..3,
        drr: bool,
        marks: bool,
    ) -> QueueConfig {
        if drr {
            let limit = DropTailConfig { packets: marks.then_some(limit), bytes: marks.then_some(limit * 1_000) };
            return QueueConfig::Drr(DrrConfig { quantum, flow_limit, limit, ..DrrConfig::default() });
        }
        let mark_threshold = marks.then_some(Span::from_millis(1));
        let plain = FairQueuingConfig::default();
        QueueConfig::FairQueuing(FairQueuingConfig { limit, flow_limit, quantum, buckets, mark_threshold, ..plain })
    }
}

prop_compose! {
    fn any_codel()(
        limit in 1_u64..50,
        ecn: bool,
        linux: bool,
        interval_micros in 2_u64..20_000,
        queues in proptest::option::of(1_u32..4),
    ) -> QueueConfig {
        let arithmetic = if linux { CodelArithmetic::Linux } else { CodelArithmetic::Rfc8289 };
        let interval = Span::from_micros(interval_micros);
        let target = interval / 20;
        let mark_threshold = ecn.then_some(target * 2);
        match queues {
            None => {
                let plain = CodelConfig::default();
                QueueConfig::Codel(CodelConfig { target, interval, limit, ecn, mark_threshold, arithmetic, ..plain })
            }
            Some(queues) => QueueConfig::FqCodel(FqCodelConfig {
                limit,
                queues,
                target,
                interval,
                ecn,
                mark_threshold,
                arithmetic,
                ..FqCodelConfig::default()
            }),
        }
    }
}

prop_compose! {
    fn any_red()(
        limit in 1_u64..50,
        weight in 0.0_f64..1.0,
        min in 0.0_f64..5.0,
        span in 0.1_f64..10.0,
        max_probability in 0.001_f64..1.0,
        flags: [bool; 4],
    ) -> QueueConfig {
        let [gentle, ecn, by_bytes, adaptive] = flags;
        QueueConfig::Red(RedConfig {
            limit,
            weight,
            min,
            max: min + span,
            max_probability,
            gentle,
            ecn,
            byte_mode: by_bytes.then_some(1500),
            adaptive: adaptive.then(RedAdaption::default),
            ..RedConfig::default()
        })
    }
}

prop_compose! {
    fn any_sch_red()(
        limit in 1_500_u64..40_000,
        min in 0_u64..5_000,
        span in 1_u64..20_000,
        probability in 0.001_f64..1.0,
        weight_log in 1_u32..12,
        flags: [bool; 4],
    ) -> QueueConfig {
        let [ecn, hard_drop, no_drop, adaptive] = flags;
        let (max, plain) = (min + span, SchRedConfig::default());
        QueueConfig::SchRed(SchRedConfig {
            limit, min, max, probability, weight_log, ecn, hard_drop, no_drop, adaptive, ..plain
        })
    }
}

prop_compose! {
    fn any_pie()(
        limit in 1_u64..50,
        target_micros in 1_u64..20_000,
        update_micros in 1_u64..20_000,
        allowance_millis in 0_u64..200,
        ecn: bool,
    ) -> QueueConfig {
        QueueConfig::Pie(PieConfig {
            limit,
            target: Span::from_micros(target_micros),
            update_interval: Span::from_micros(update_micros),
            first_update: Span::from_micros(update_micros),
            burst_allowance: Span::from_millis(allowance_millis),
            ecn,
            ..PieConfig::default()
        })
    }
}

prop_compose! {
    fn any_dual_pi2()(
        limit in 1_u64..50,
        target_micros in 1_u64..20_000,
        update_micros in 1_u64..20_000,
        classic_protection in 0_u32..101,
        flags: [bool; 2],
    ) -> QueueConfig {
        let classifier = if flags[0] { L4sClassifier::L4s } else { L4sClassifier::AnyEct };
        QueueConfig::DualPi2(DualPi2Config {
            limit,
            target: Span::from_micros(target_micros),
            update_interval: Span::from_micros(update_micros),
            classic_protection,
            classifier,
            drop_on_overload: flags[1],
            ..DualPi2Config::default()
        })
    }
}

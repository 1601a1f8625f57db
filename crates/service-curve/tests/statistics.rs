//! The statistics agree with the `arch` package (8.0) and statsmodels (0.15) to the last digits.

mod common;

use common::{close, numbers, vectors};
use flowstart_service_curve::stats::{Cut, DfGlsConfig, LagChoice, Series, Trend, autocorrelation, dfgls, runs_test};
use serde_json::Value;

fn each_series(check: impl Fn(&Series, &Value)) {
    let all = vectors("stat_tests");
    let series = all["series"].as_object().unwrap();
    assert_eq!(series.len(), 3);
    for one in series.values() {
        check(&Series::new(numbers(&one["y"])).unwrap(), one);
    }
}

#[test]
fn dfgls_is_that_of_arch_with_fixed_and_chosen_lags() {
    each_series(|series, one| {
        for case in one["dfgls"].as_array().unwrap() {
            let lags = match case["method"].as_str() {
                Some("aic") => LagChoice::Aic,
                Some("bic") => LagChoice::Bic,
                Some(_) => LagChoice::TStatistic,
                None => LagChoice::Fixed(case["lags"].as_u64().unwrap() as usize),
            };
            let trend = if case["trend"] == "c" { Trend::Constant } else { Trend::ConstantAndTime };
            let found = dfgls(series, &DfGlsConfig { trend, lags, max_lags: None }).unwrap();
            assert_eq!(found.lags as u64, case["lags"].as_u64().unwrap(), "{case}");
            assert_eq!(found.observations as u64, case["nobs"].as_u64().unwrap());
            close(found.statistic, case["stat"].as_f64().unwrap(), 1e-8);
            close(found.p_value, case["pvalue"].as_f64().unwrap(), 1e-7);
            for (value, level) in [(found.critical.one, "1%"), (found.critical.five, "5%"), (found.critical.ten, "10%")]
            {
                close(value, case["crit"][level].as_f64().unwrap(), 1e-12);
            }
        }
    });
}

#[test]
fn the_runs_test_is_that_of_statsmodels_without_correction() {
    each_series(|series, one| {
        for case in one["runs"].as_array().unwrap().iter().filter(|case| case["correction"] == false) {
            let cut = if case["cutoff"] == "mean" { Cut::Mean } else { Cut::Median };
            let found = runs_test(series, cut).unwrap();
            let counts = [("runs", found.runs), ("n_ge", found.upper), ("n_lt", found.lower)];
            for (name, count) in counts {
                assert_eq!(count as u64, case[name].as_u64().unwrap(), "{name}");
            }
            let values = [("mean", found.mean), ("var", found.variance), ("z", found.z), ("p", found.p_value)];
            for (name, value) in values {
                close(value, case[name].as_f64().unwrap(), 1e-12);
            }
        }
    });
}

#[test]
fn autocorrelations_are_the_sums_of_products_over_their_value_at_lag_zero() {
    each_series(|series, one| {
        let expected = numbers(&one["acf_lags_0_5"]);
        for (found, expected) in autocorrelation(series, 5).into_iter().zip(expected) {
            close(found, expected, 1e-12);
        }
    });
}

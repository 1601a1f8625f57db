// What every start must keep to, and what this one is for.

use flowstart::race::measures::LOST_BEFORE;
use flowstart::race::{Race, RunOptions};

#[test]
fn the_contract_is_kept() {
    my_start::register().expect("the name is free");
    flowstart::contract::check("my_start+cubic").expect("the contract is kept");
}

#[test]
fn it_loses_nothing_before_it_ends_where_the_buffer_holds_a_round_trip() {
    my_start::register().expect("the name is free");
    let contestant = "my_start+cubic".parse().expect("a contestant");
    let race = Race { contestants: vec![contestant], sizes: Vec::new(), ..Race::default() };
    let result = race.run(&RunOptions::default()).expect("the race runs");
    let lost = result.contestants[0].estimate(LOST_BEFORE.measure()).expect("it was measured");
    assert_eq!(lost.mean, 0.0);
}

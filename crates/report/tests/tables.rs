//! Tables in the terminal, as Markdown and as CSV.

use flowstart_report::{Best, Cell, Column, Palette, Table, Terminal};
use proptest::prelude::*;

/// A race of three in the shape `compare` prints.
fn race() -> Table {
    let mut palette = Palette::new();
    let mut table = Table::new(
        "100 Mbit/s, 20 ms, 1 BDP",
        vec![
            Column::key("Contestant"),
            Column::text("Exit reason").help("Why the start ended."),
            Column::number("Exit time", "ms").best(Best::Lowest),
            Column::number("Window at exit / BDP", ""),
            Column::number("Completion of 1 MB", "ms").best(Best::Lowest),
            Column::number("Queueing delay, P99", "ms").best(Best::Lowest),
            Column::number("Lost before exit", "packets").best(Best::Lowest),
        ],
    );
    let mut contestant = |name: &str, cells: [Cell; 6]| {
        let color = palette.color(name);
        table.push_colored(color, [Cell::text(name)].into_iter().chain(cells).collect());
    };
    contestant(
        "cubic",
        [
            Cell::text("delay increase"),
            Cell::number(121.4, 1),
            Cell::number(0.87, 2),
            Cell::quantity(203.25, 199.25, 207.25, 1),
            Cell::number(8.0, 1),
            Cell::count(0),
        ],
    );
    contestant(
        "slow-start/cubic",
        [
            Cell::text("loss"),
            Cell::number(141.0, 1),
            Cell::number(2.04, 2),
            Cell::quantity(1203.0, 1000.0, 1505.5, 1),
            Cell::number(20.0, 1),
            Cell::count(161),
        ],
    );
    contestant(
        "paced-chirping/dctcp",
        [
            Cell::text("in flight"),
            Cell::Missing,
            Cell::number(f64::NAN, 2),
            Cell::number(141.0, 1),
            Cell::number(1.2, 1),
            Cell::count(0),
        ],
    );
    table.notes.push("Deterministic: no randomness in this scenario, one run is enough.".into());
    table
}

#[test]
fn a_wide_terminal_shows_all_columns_side_by_side() {
    insta::assert_snapshot!(race().to_terminal(Terminal::plain()));
}

#[test]
fn a_narrow_terminal_shows_blocks_that_repeat_the_key_column() {
    insta::assert_snapshot!(race().to_terminal(Terminal { width: 60, ..Terminal::plain() }));
}

#[test]
fn without_unicode_only_ascii_comes_out() {
    let text = race().to_terminal(Terminal { unicode: false, ..Terminal::plain() });
    assert!(text.is_ascii());
    insta::assert_snapshot!(text);
}

#[test]
fn colours_change_nothing_but_the_escape_sequences() {
    let coloured = race().to_terminal(Terminal { color: true, ..Terminal::plain() });
    insta::assert_snapshot!(coloured.replace('\u{1b}', "␛"));
    let plain = race().to_terminal(Terminal::plain());
    assert!(!plain.contains('\u{1b}'));
}

#[test]
fn where_intervals_must_be_apart_the_best_is_set_off_only_if_its_own_is_clear_of_all_others() {
    let with = |cells: &[Cell]| {
        let column = Column::number("rate", "Mbit/s").best(Best::Highest).apart();
        let mut table = Table::new("", vec![Column::key("who"), column]);
        for cell in cells {
            table.push(vec![Cell::text("x"), cell.clone()]);
        }
        table.to_markdown().matches("**").count() / 2
    };
    let of = |low, high| Cell::quantity((low + high) / 2.0, low, high, 1);
    assert_eq!(with(&[of(3.0, 5.0), of(1.0, 2.9), Cell::Missing]), 1);
    assert_eq!(with(&[Cell::Missing, of(1.0, 2.9), of(3.0, 5.0)]), 1);
    assert_eq!(with(&[of(3.0, 5.0), of(1.0, 3.0)]), 0);
    assert_eq!(with(&[of(3.0, 5.0), Cell::number(3.5, 1)]), 0);
    assert_eq!(with(&[of(3.0, 5.0), of(2.0, 6.0), of(0.0, 1.0)]), 0, "of two that print alike none is the best");
    assert_eq!(with(&[of(4.0, 4.0), of(4.0, 4.0), of(3.0, 3.0)]), 0, "however exactly they are known");
    assert_eq!(with(&[of(4.0, 4.0), of(3.0, 3.0)]), 1);
    assert_eq!(with(&[Cell::number(3.0, 1), Cell::number(1.0, 1)]), 0, "how certain these are nobody knows");
    assert_eq!(with(&[of(3.0, 5.0), Cell::number(1.0, 1)]), 0, "nor this one");
    assert_eq!(with(&[of(3.0, 5.0), Cell::Missing]), 0, "nothing to be better than");
    assert_eq!(with(&[of(3.02, 5.0), of(1.0, 2.98)]), 0, "both ends print as 3.0");
    let best = [of(3.0, 5.0), of(1.0, 2.0)];
    let beside = |other| with(&[best[0].clone(), best[1].clone(), other]);
    assert_eq!(beside(Cell::between(0.0, Some(2.9), 1)), 1);
    assert_eq!(beside(Cell::between(0.0, Some(3.0), 1)), 0, "it may be as good");
    assert_eq!(beside(Cell::between(2.0, None, 1)), 0, "it may be better");
    assert_eq!(beside(Cell::between(9.0, None, 1)), 0, "it is better");
}

#[test]
fn of_what_only_bounds_are_known_there_is_no_number() {
    let mut table = Table::new("", vec![Column::key("who"), Column::number("rate", "Mbit/s")]);
    table.push(vec![Cell::text("a"), Cell::between(2.4, None, 2)]);
    table.push(vec![Cell::text("b"), Cell::between(0.0, Some(2.4), 2)]);
    assert_eq!(table.to_csv(), "who,rate_mbit_s,rate_mbit_s_low,rate_mbit_s_high\na,,2.4,\nb,,0,2.4\n");
    let text = table.to_markdown();
    assert!(text.contains("\u{2265} 2.40") && text.contains("0.00 to 2.40"), "{text}");
}

#[test]
fn markdown_sets_the_best_in_bold_and_escapes_names() {
    let mut table = race();
    table.push(vec![Cell::text("a|b*c*_d_ <script> snake_case")]);
    insta::assert_snapshot!(table.to_markdown());
}

#[test]
fn csv_has_machine_names_full_precision_and_interval_columns() {
    let mut table = race();
    table.push(vec![Cell::text("with, comma and \"quote\"\nand line"), Cell::Missing, Cell::number(1.0 / 3.0, 1)]);
    insta::assert_snapshot!(table.to_csv());
}

#[test]
fn equal_values_have_no_winner() {
    let mut table = Table::new("", vec![Column::key("a"), Column::number("b", "ms").best(Best::Lowest)]);
    table.push(vec![Cell::text("x"), Cell::number(1.001, 1)]);
    table.push(vec![Cell::text("y"), Cell::number(1.002, 1)]);
    assert!(!table.to_terminal(Terminal::plain()).contains('*'));
    table.push(vec![Cell::text("z"), Cell::number(1.2, 1)]);
    assert_eq!(table.to_terminal(Terminal::plain()).matches("1.0*").count(), 2);
}

#[test]
fn an_empty_table_is_still_a_table() {
    let table = Table::new("nothing", vec![]);
    assert_eq!(table.to_terminal(Terminal::plain()), "nothing\n\n\n");
    assert_eq!(table.to_csv(), "\n");
    let _ = table.to_markdown();
}

fn any_cell() -> impl Strategy<Value = Cell> {
    prop_oneof![
        Just(Cell::Missing),
        ".{0,30}".prop_map(Cell::text),
        (any::<f64>(), any::<u8>()).prop_map(|(v, d)| Cell::number(v, d)),
        (any::<f64>(), any::<f64>(), any::<f64>(), any::<u8>()).prop_map(|(v, l, h, d)| Cell::quantity(v, l, h, d)),
    ]
}

proptest! {
    #[test]
    fn no_table_panics_and_no_name_reaches_the_terminal_as_a_command(
        columns in proptest::collection::vec((".{0,20}", ".{0,4}", any::<bool>(), any::<bool>()), 0..6),
        rows in proptest::collection::vec(proptest::collection::vec(any_cell(), 0..7), 0..6),
        width in prop_oneof![0usize..120, Just(usize::MAX)],
        color: bool,
        unicode: bool,
    ) {
        let columns = columns.into_iter().map(|(heading, unit, number, key)| {
            let column = if number { Column::number(heading, unit).best(Best::Highest) } else { Column::text(heading) };
            Column { key, ..column }
        });
        let mut table = Table::new("t", columns.collect());
        for row in rows {
            table.push(row);
        }
        let text = table.to_terminal(Terminal { width, color, true_color: false, unicode });
        if !color {
            prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
        }
        let _ = table.to_markdown();
        let _ = table.to_csv();
    }
}

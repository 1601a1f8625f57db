//! Result tables become files beside the others.

use flowstart_parallel::Cancel;
use flowstart_results::{Format, Provenance, run_scenario, write_results};
use flowstart_scenario::Scenario;
use flowstart_units::Span;
use parquet::file::reader::{FileReader as _, SerializedFileReader};

#[test]
fn every_table_is_a_file_with_its_columns_its_rows_and_the_provenance() {
    let text = "[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\nbuffer = \"1 BDP\"\n[[flow]]\n";
    let mut scenario = Scenario::parse("test", text).unwrap();
    scenario.duration = Span::from_secs(1);
    let results = run_scenario(&scenario, Some(1), &Cancel::default(), |_| {}).unwrap();
    let provenance = Provenance::new(&scenario, &results);
    let folder = tempfile::tempdir().unwrap();
    let formats = [Format::Tables(flowstart_parquet::TABLES)];
    write_results(folder.path(), &results, &provenance, &formats).unwrap();
    let mut tables = 0;
    for table in &results.tables {
        let file = std::fs::File::open(folder.path().join(format!("{}.parquet", table.spec().name))).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let metadata = reader.metadata().file_metadata();
        assert_eq!(metadata.num_rows(), table.rows() as i64);
        let columns: Vec<&str> = metadata.schema_descr().columns().iter().map(|column| column.name()).collect();
        assert_eq!(columns, table.spec().columns.iter().map(|column| column.name).collect::<Vec<_>>());
        let said = metadata.key_value_metadata().unwrap().iter().find(|pair| pair.key == "flowstart").unwrap();
        assert_eq!(said.value.as_deref(), Some(provenance.to_json().to_string().as_str()));
        tables += 1;
    }
    assert_eq!(tables, 6);
}

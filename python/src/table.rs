//! Tables as Arrow record batches, handed over by Arrow's C stream interface.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{ArrowError, DataType};
use flowstart::race::{RaceResult, exit_name};
use flowstart_results::{Column, Table as Rows};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A table in Arrow's memory layout: `pyarrow.table(t)`, `polars.DataFrame(t)`,
/// `pandas.DataFrame.from_arrow(t)`.
#[pyclass(frozen, module = "flowstart._native")]
pub(crate) struct Table(RecordBatch);

/// Kinds of columns.
const TEXT: &str = "text";
const INTEGER: &str = "integer";
const NUMBER: &str = "number";
const FLAG: &str = "flag";

/// A column of a pickled table: name, kind, values.
type Pickled = (String, &'static str, Py<PyAny>);

/// The values of a list, all of a kind.
fn array(kind: &str, list: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    Ok(match kind {
        TEXT => Arc::new(list.extract::<Vec<Option<String>>>()?.into_iter().collect::<StringArray>()),
        INTEGER => Arc::new(list.extract::<Vec<Option<i64>>>()?.into_iter().collect::<Int64Array>()),
        FLAG => Arc::new(list.extract::<Vec<Option<bool>>>()?.into_iter().collect::<BooleanArray>()),
        NUMBER => Arc::new(list.extract::<Vec<Option<f64>>>()?.into_iter().collect::<Float64Array>()),
        _ => return Err(PyTypeError::new_err(format!("there are no columns of kind \"{kind}\""))),
    })
}

fn defect(error: &ArrowError) -> PyErr {
    PyRuntimeError::new_err(format!("this table cannot be handed over: {error}"))
}

impl Table {
    fn of(columns: Vec<(String, ArrayRef)>) -> PyResult<Self> {
        // Columns without a name in front of them can be missing in any row.
        let columns = columns.into_iter().map(|(name, column)| (name, column, true));
        RecordBatch::try_from_iter_with_nullable(columns).map(Self).map_err(|error| defect(&error))
    }

    /// A row per contestant and run: measures, and what is no number behind them.
    pub(crate) fn of_runs(result: &RaceResult) -> PyResult<Self> {
        let rows: Vec<_> =
            result.contestants.iter().flat_map(|one| one.runs.iter().map(move |run| (one, run))).collect();
        let mut columns: Vec<(String, ArrayRef)> = vec![
            (
                "contestant".into(),
                Arc::new(rows.iter().map(|(one, _)| Some(one.label.as_str())).collect::<StringArray>()),
            ),
            ("run".into(), Arc::new(rows.iter().map(|(_, run)| run.run as i64).collect::<Int64Array>())),
        ];
        for measure in result.race.measures() {
            let values: Float64Array = rows.iter().map(|(_, run)| run.get(measure)).collect();
            columns.push((measure.name(), Arc::new(values)));
        }
        let exits = rows.iter().map(|(_, run)| run.exits.iter().map(|exit| exit_name(*exit)).collect::<Vec<_>>());
        let exits: StringArray = exits.map(|exits| Some(exits.join(" "))).collect();
        let queues: StringArray = rows.iter().map(|(one, _)| Some(result.race.queue_name(&one.contestant))).collect();
        columns.extend([("exit_reasons".into(), Arc::new(exits) as ArrayRef), ("queue".into(), Arc::new(queues))]);
        Self::of(columns)
    }

    /// A row per point of the pictures; of several runs the median, and between what most lie.
    pub(crate) fn of_series(result: &RaceResult) -> PyResult<Self> {
        let (mut contestants, mut kinds, mut times, mut values) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut seconds, mut low, mut high) = (Vec::new(), Vec::new(), Vec::new());
        let rtt = result.race.base_rtt().as_secs_f64();
        for one in &result.contestants {
            let Some(series) = &one.series else { continue };
            let spread = series.spread.as_deref();
            let kind = [
                ("sending_mbit_s", &series.sending, spread.map(|spread| &spread.sending)),
                ("throughput_mbit_s", &series.throughput, spread.map(|spread| &spread.throughput)),
                ("queue_ms", &series.queue, spread.map(|spread| &spread.queue)),
                ("cwnd_packets", &series.cwnd, spread.map(|spread| &spread.cwnd)),
                ("delivered_mb", &series.delivered, spread.map(|spread| &spread.delivered)),
            ];
            for (name, points, band) in kind {
                for (place, [time, value]) in points.iter().enumerate() {
                    let between = band.and_then(|band| band.get(place));
                    low.push(between.map(|[_, low, _]| *low));
                    high.push(between.map(|[_, _, high]| *high));
                    seconds.push(time * rtt);
                    contestants.push(one.label.as_str());
                    kinds.push(name);
                    times.push(*time);
                    values.push(*value);
                }
            }
        }
        Self::of(vec![
            ("contestant".into(), Arc::new(StringArray::from(contestants))),
            ("what".into(), Arc::new(StringArray::from(kinds))),
            ("time_rtt".into(), Arc::new(Float64Array::from(times))),
            ("value".into(), Arc::new(Float64Array::from(values))),
            ("time_s".into(), Arc::new(Float64Array::from(seconds))),
            ("low".into(), Arc::new(Float64Array::from(low))),
            ("high".into(), Arc::new(Float64Array::from(high))),
        ])
    }

    /// A table of named lists: of flags, of whole numbers, of numbers or of text, where `None` is
    /// nothing said.
    pub(crate) fn of_lists(columns: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Self> {
        let columns = columns.into_iter().map(|(name, list)| {
            let silent = list.extract::<Vec<Option<f64>>>().is_ok_and(|values| values.iter().all(Option::is_none));
            // Of a list that says nothing every kind is right.
            let kinds = if silent { &[NUMBER][..] } else { &[FLAG, INTEGER, NUMBER, TEXT] };
            match kinds.iter().find_map(|kind| array(kind, &list).ok()) {
                Some(array) => Ok((name, array)),
                None => Err(PyTypeError::new_err(format!("column {name}: its values are of several kinds"))),
            }
        });
        Self::of(columns.collect::<PyResult<_>>()?)
    }

    /// A table of named columns of known kinds, as [`Self::__reduce__`] names them.
    pub(crate) fn of_kinds(columns: Vec<(String, String, Bound<'_, PyAny>)>) -> PyResult<Self> {
        let columns = columns.iter().map(|(name, kind, list)| Ok((name.clone(), array(kind, list)?)));
        Self::of(columns.collect::<PyResult<_>>()?)
    }

    /// A table of the results of a scenario.
    pub(crate) fn of_results(table: &Rows) -> PyResult<Self> {
        let columns = table.spec().columns.iter().zip(table.columns()).map(|(spec, column)| {
            let array: ArrayRef = match column {
                Column::Text(values) => Arc::new(values.iter().map(Option::as_deref).collect::<StringArray>()),
                Column::Integer(values) => Arc::new(values.iter().copied().collect::<Int64Array>()),
                Column::Float(values) => Arc::new(values.iter().copied().collect::<Float64Array>()),
                Column::Flag(values) => Arc::new(values.iter().copied().collect::<BooleanArray>()),
            };
            (spec.name.to_owned(), array)
        });
        Self::of(columns.collect())
    }
}

#[pymethods]
impl Table {
    /// Arrow's C stream, as the Arrow PyCapsule interface has it.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows to leave a wish unfulfilled.
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        slf.py().import("flowstart.results")?.call_method1("table_text", (slf,))?.extract()
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        slf.py().import("flowstart.results")?.call_method1("table_html", (slf,))?.extract()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// For pickle and copy: tables go between processes.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Vec<Pickled>,))> {
        let schema = self.0.schema();
        let columns = schema.fields().iter().map(|field| {
            let kind = match field.data_type() {
                DataType::Utf8 => TEXT,
                DataType::Int64 => INTEGER,
                DataType::Boolean => FLAG,
                _ => NUMBER,
            };
            Ok((field.name().clone(), kind, self.column(py, field.name())?))
        });
        let make = py.import("flowstart._native")?.getattr("table_from")?;
        Ok((make, (columns.collect::<PyResult<_>>()?,)))
    }

    /// The values of a column, copied into a list.
    fn column(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        let Some(column) = self.0.column_by_name(name) else {
            return Err(pyo3::exceptions::PyKeyError::new_err(name.to_owned()));
        };
        if let Some(texts) = column.as_any().downcast_ref::<StringArray>() {
            return Ok(texts.iter().collect::<Vec<_>>().into_pyobject(py)?.into_any().unbind());
        }
        if let Some(numbers) = column.as_any().downcast_ref::<Int64Array>() {
            return Ok(numbers.iter().collect::<Vec<_>>().into_pyobject(py)?.into_any().unbind());
        }
        if let Some(flags) = column.as_any().downcast_ref::<BooleanArray>() {
            return Ok(flags.iter().collect::<Vec<_>>().into_pyobject(py)?.into_any().unbind());
        }
        let numbers = column.as_any().downcast_ref::<Float64Array>();
        let numbers: Vec<Option<f64>> = numbers.map(|numbers| numbers.iter().collect()).unwrap_or_default();
        Ok(numbers.into_pyobject(py)?.into_any().unbind())
    }
}

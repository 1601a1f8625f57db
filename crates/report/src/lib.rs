//! Terminal tables, SVG plots and one-file HTML reports.
//!
//! The crate knows nothing about networks: it shows a [`Table`], a [`Figure`] or a [`Page`] of
//! them. All text given to it is plain text; whatever the output format needs escaped is escaped
//! here.
//!
//! One [`Palette`] per page gives every contestant one [`Color`] in all of them.
//!
//! ```
//! use flowstart_report::{Best, Cell, Column, Table};
//!
//! let time = Column::number("completion time", "ms").best(Best::Lowest);
//! let mut table = Table::new("Which is sooner?", vec![Column::key("start"), time]);
//! table.push(vec![Cell::text("slow start"), Cell::Number { value: 312.4, digits: 1 }]);
//! table.push(vec![Cell::text("HyStart | CUBIC"), Cell::Number { value: 298.0, digits: 1 }]);
//! let markdown = table.to_markdown();
//! assert!(markdown.contains("| 312.4 |"), "{markdown}");
//! assert!(markdown.contains("| **298.0** |"), "the best is bold: {markdown}");
//! assert!(markdown.contains(r"HyStart \| CUBIC"), "escaped: {markdown}");
//! ```

mod axis;
mod color;
mod csv;
mod downsample;
mod figure;
mod html;
mod markdown;
mod overlap;
mod page;
mod svg;
mod table;
mod terminal;
mod text;

pub use color::{Color, Palette};
pub use downsample::{Extent, keep_extremes, thin_cloud};
pub use figure::{Also, Axis, Direction, Figure, Legend, Marker, Scale, Series, Shape};
pub use page::{Page, Section};
pub use svg::side_by_side;
pub use table::{Align, Best, Cell, Column, Row, Table};
pub use terminal::Terminal;
pub use text::one_line;

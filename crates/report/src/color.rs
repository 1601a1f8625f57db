//! One colour per contestant, the same in every figure and table.

/// The place of a contestant in a [`Palette`]: an index, not a colour value.
///
/// Which shade it becomes depends on the background (light or dark); see [`Color::light`] and [`Color::dark`].
/// Past the number of hues the dash pattern changes too, so that contestant 9 is still told from contestant 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Color(u16);

/// Gives every name a colour by order of first appearance and remembers it.
///
/// Use one palette for all tables and figures of a page: then a contestant has the same colour everywhere.
#[derive(Clone, Debug, Default)]
pub struct Palette {
    names: Vec<String>,
}

impl Palette {
    /// A palette that knows nobody yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The colour of `name`: the next free one when the name is new.
    pub fn color(&mut self, name: &str) -> Color {
        let place = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        Color::new(place)
    }
}

impl Color {
    /// The colour at a place of the palette; places past 65535 share the last one.
    #[must_use]
    pub fn new(place: usize) -> Self {
        Self(u16::try_from(place).unwrap_or(u16::MAX))
    }

    /// The place in the palette.
    #[must_use]
    pub const fn place(self) -> usize {
        self.0 as usize
    }
}

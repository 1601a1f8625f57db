//! One colour per contestant, the same in every figure and table.

/// A shade as red, green, blue.
pub(crate) type Rgb = [u8; 3];

/// The hues in order, each as a shade for light and one for dark backgrounds.
///
/// Chosen by a search in the Oklab space that maximised the smallest difference between any two, as
/// seen with normal vision and with the three dichromacies simulated after Machado, Oliveira,
/// Fernandes 2009, with at least 3:1 contrast against the background (WCAG 2.1, 1.4.11). The tests
/// check both.
const HUES: [(Rgb, Rgb); 8] = [
    ([0x1e, 0x3f, 0xb2], [0x41, 0x9c, 0xe2]), // blue
    ([0xaf, 0x53, 0x02], [0xd7, 0x42, 0x18]), // orange
    ([0x34, 0x81, 0x69], [0xb4, 0xf0, 0xbc]), // green
    ([0x91, 0x60, 0xe8], [0x77, 0x60, 0xe6]), // violet
    ([0xb2, 0x8a, 0x2c], [0xed, 0xc4, 0x0e]), // gold
    ([0x50, 0x99, 0xb9], [0x58, 0xd3, 0xf8]), // cyan
    ([0x8b, 0x20, 0x1a], [0xf9, 0x8d, 0x76]), // red
    ([0x6f, 0x33, 0x6e], [0xaf, 0x5c, 0x99]), // plum
];

/// Number of hues; contestants beyond it differ by the dashes of their lines.
pub(crate) const HUE_COUNT: usize = HUES.len();

/// What is no contestant, such as a link: nearly without a hue, at least 4.5:1 against the
/// background.
const NEUTRAL: (Rgb, Rgb) = ([0x57, 0x60, 0x6a], [0xa3, 0xac, 0xb6]);

/// The class of all that is [`Color::neutral`], behind those of the hues.
pub(crate) const NEUTRAL_HUE: usize = HUE_COUNT;

/// Places from here on are neutral; no palette has so many.
const FIRST_NEUTRAL: u16 = 0xff00;

/// Dashes of the lines of each round through the hues, in pixels; the last one serves all further
/// rounds.
const DASHES: [&str; 4] = ["", "7 3", "2 3", "9 3 2 3"];

/// Background of light pages, the one the light shades were chosen for.
pub(crate) const LIGHT_BACKGROUND: Rgb = [0xff, 0xff, 0xff];

/// Background of dark pages, the one the dark shades were chosen for.
pub(crate) const DARK_BACKGROUND: Rgb = [0x15, 0x18, 0x1d];

/// The place of a contestant in a [`Palette`]: an index, not a shade.
///
/// Which shade it becomes depends on the background. Past the number of hues (8) the hue repeats
/// with another dash pattern, so that the ninth contestant is still told from the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Color(u16);

/// Gives every name a colour by order of first appearance and remembers it.
///
/// Use one palette for all tables and figures of a page: then a contestant has the same colour
/// everywhere.
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
    /// The colour at a place of the palette; places past 65279 share the last one.
    #[must_use]
    pub fn new(place: usize) -> Self {
        Self(u16::try_from(place).unwrap_or(u16::MAX).min(FIRST_NEUTRAL - 1))
    }

    /// Grey, for what is no contestant and must not pass for one: links, what all share. Several
    /// of them differ by their dashes.
    #[must_use]
    pub fn neutral(place: usize) -> Self {
        Self(FIRST_NEUTRAL.saturating_add(u16::try_from(place).unwrap_or(u16::MAX)))
    }

    const fn is_neutral(self) -> bool {
        self.0 >= FIRST_NEUTRAL
    }

    /// The place in the palette, or among what is neutral.
    #[must_use]
    pub const fn place(self) -> usize {
        if self.is_neutral() { (self.0 - FIRST_NEUTRAL) as usize } else { self.0 as usize }
    }

    /// Which hue, below [`HUE_COUNT`]; or [`NEUTRAL_HUE`].
    pub(crate) const fn hue(self) -> usize {
        if self.is_neutral() { NEUTRAL_HUE } else { self.place() % HUE_COUNT }
    }

    const fn shades(self) -> (Rgb, Rgb) {
        if self.is_neutral() { NEUTRAL } else { HUES[self.hue()] }
    }

    /// The dash pattern as SVG wants it; empty for a solid line.
    pub(crate) fn dashes(self) -> &'static str {
        let round = if self.is_neutral() { self.place() } else { self.place() / HUE_COUNT };
        DASHES[round.min(DASHES.len() - 1)]
    }

    /// The shade on a light background, as `#rrggbb`.
    #[must_use]
    pub fn on_light(self) -> String {
        hex(self.shades().0)
    }

    /// The shade on a dark background, as `#rrggbb`.
    #[must_use]
    pub fn on_dark(self) -> String {
        hex(self.shades().1)
    }

    /// A shade between the two, for terminals: nobody knows their background.
    pub(crate) fn between(self) -> Rgb {
        let (light, dark) = self.shades();
        std::array::from_fn(|i| u8::midpoint(light[i], dark[i]))
    }
}

/// `#rrggbb`.
pub(crate) fn hex(rgb: Rgb) -> String {
    format!("#{:02x}{:02x}{:02x}", rgb[0], rgb[1], rgb[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Normal vision, then protanopia, deuteranopia, tritanopia: linear-RGB matrices of Machado,
    /// Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
    /// Deficiency", 2009, severity 1.0.
    const VISIONS: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    ];

    fn linear(rgb: Rgb) -> [f64; 3] {
        rgb.map(|c| {
            let c = f64::from(c) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn contrast(a: Rgb, b: Rgb) -> f64 {
        let luminance = |rgb| {
            let [r, g, b] = linear(rgb);
            0.2126 * r + 0.7152 * g + 0.0722 * b
        };
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// Oklab after Ottosson 2020.
    fn oklab([r, g, b]: [f64; 3]) -> [f64; 3] {
        let l = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b).cbrt();
        let m = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b).cbrt();
        let s = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b).cbrt();
        [
            0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
            1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
            0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s,
        ]
    }

    fn seen(rgb: Rgb, vision: &[[f64; 3]; 3]) -> [f64; 3] {
        let light = linear(rgb);
        oklab(vision.map(|row| (0..3).map(|i| row[i] * light[i]).sum::<f64>().clamp(0.0, 1.0)))
    }

    #[test]
    fn every_shade_stands_out_from_its_background_by_three_to_one() {
        for (light, dark) in HUES {
            assert!(contrast(light, LIGHT_BACKGROUND) >= 3.0, "{}", hex(light));
            assert!(contrast(dark, DARK_BACKGROUND) >= 3.0, "{}", hex(dark));
        }
    }

    #[test]
    fn any_two_shades_differ_for_every_kind_of_colour_vision() {
        // The Okabe-Ito palette reaches 0.076 by the same measure.
        let least = 0.10;
        for vision in &VISIONS {
            for (i, a) in HUES.iter().enumerate() {
                for b in &HUES[..i] {
                    for (a, b) in [(a.0, b.0), (a.1, b.1)] {
                        let (p, q) = (seen(a, vision), seen(b, vision));
                        let distance = (0..3).map(|k| (p[k] - q[k]).powi(2)).sum::<f64>().sqrt();
                        assert!(distance >= least, "{} {} differ by {distance:.3}", hex(a), hex(b));
                    }
                }
            }
        }
    }

    #[test]
    fn a_name_keeps_its_colour_and_the_ninth_differs_by_its_dashes() {
        let mut palette = Palette::new();
        let first = palette.color("cubic");
        let others: Vec<Color> = (0..8).map(|i| palette.color(&format!("contestant {i}"))).collect();
        assert_eq!(palette.color("cubic"), first);
        assert_eq!(others[7].hue(), first.hue());
        assert_ne!(others[7].dashes(), first.dashes());
        assert_eq!(Color::new(usize::MAX).place(), 65_279);
    }

    #[test]
    fn what_is_neutral_has_no_contestants_colour_and_differs_by_dashes() {
        let links = [Color::neutral(0), Color::neutral(1)];
        let contestants: Vec<String> = (0..HUE_COUNT).map(|place| Color::new(place).on_light()).collect();
        assert!(!contestants.contains(&links[0].on_light()), "{contestants:?}");
        assert_eq!(links[0].on_light(), links[1].on_light());
        assert_ne!(links[0].dashes(), links[1].dashes());
        assert_eq!(links.map(Color::place), [0, 1]);
        assert_eq!(Color::neutral(usize::MAX).hue(), NEUTRAL_HUE);
        assert!(contrast(NEUTRAL.0, LIGHT_BACKGROUND) >= 4.5 && contrast(NEUTRAL.1, DARK_BACKGROUND) >= 4.5);
    }
}

//! Web pages after SURGE (Barford and Crovella 1998): a server with a set of files, of which users
//! fetch pages, each a base file with embedded ones or a file by itself, with pauses between them.
//! The two sets of parameters are those of table 1 of Scharf and Strotbek (2008).

use flowstart_random::{Rng, Stream, stream, unit};
use flowstart_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use flowstart_simulator::Reply;

/// Files on the server and how users choose among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Files {
    /// SURGE's defaults: small files with a heavy tail, Zipf popularity, many embedded files; about
    /// 17 kB per page.
    #[default]
    Surge,
    /// Log-normal sizes with a median of 150 kB, uniform popularity, few embedded files; about 490
    /// kB per page.
    Large,
}

/// How replies share connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Http {
    /// HTTP/1.0: a connection per file, one after the other.
    Single,
    /// HTTP/1.1: one connection per user, the next file asked for when the last one is there.
    #[default]
    Persistent,
    /// HTTP/1.1 with pipelining: the base file, then all embedded files at once.
    Pipelined,
}

/// A model of a server's files and its users.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WebModel {
    /// Files on the server; 2000 in the paper.
    pub files: usize,
    /// Share of them that are base files; 0.30 in the paper.
    pub base: f64,
    /// Share of them that are embedded in base files; 0.38 in the paper. The rest (0.32) are pages
    /// by themselves.
    pub embedded: f64,
    /// Popularity of pages falls as one over this power of their rank; 1 is Zipf's law, 0 is
    /// uniform.
    pub popularity: f64,
    /// Mean of the logarithm of the body's sizes in bytes.
    pub mu: f64,
    /// Standard deviation of the logarithm of the body's sizes.
    pub sigma: f64,
    /// Share of the files in the tail, 0 for none.
    pub tail: f64,
    /// Smallest size in the tail, in bytes; its shape is 1.
    pub tail_from: f64,
    /// Largest size in the tail, in bytes.
    pub tail_to: f64,
    /// Embedded files per base file.
    pub embedding: Embedding,
    /// Shape of the Pareto distribution of pauses; 1.4 in the paper.
    pub pause_shape: f64,
    /// Shortest pause in seconds; 2 in the paper.
    pub pause_from: f64,
}

/// How many files a base file embeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Embedding {
    /// Pareto, rounded down.
    Pareto {
        /// Shape.
        shape: f64,
        /// Smallest number.
        from: f64,
        /// Largest number.
        to: f64,
    },
    /// Geometric on 1, 2, …
    Geometric {
        /// Mean, at least 1.
        mean: f64,
    },
}

impl WebModel {
    /// SURGE's defaults. Table 1 of the paper names the distributions of sizes but not their
    /// parameters. Here they are the lognormal body (7.630, 1.001) and the Pareto tail from 10 kB
    /// with shape 1 that the authors of SURGE gave in 1999 for 7 % of the files; the largest size
    /// of the tail, 20 kB, is chosen so that a page has about 17 kB on average, which is what the
    /// paper says (it leaves little of the tail). At most 150 embedded files, as in the SURGE tool.
    pub const SURGE: Self = Self {
        files: 2000,
        base: 0.30,
        embedded: 0.38,
        popularity: 1.0,
        mu: 7.630,
        sigma: 1.001,
        tail: 0.07,
        tail_from: 10_000.0,
        tail_to: 20_000.0,
        embedding: Embedding::Pareto { shape: 1.245, from: 2.0, to: 150.0 },
        pause_shape: 1.4,
        pause_from: 2.0,
    };

    /// The paper's large files.
    pub const LARGE: Self = Self {
        popularity: 0.0,
        mu: 11.92,
        sigma: 1.0,
        tail: 0.0,
        embedding: Embedding::Geometric { mean: 2.0 },
        ..Self::SURGE
    };

    /// The model with this name.
    #[must_use]
    pub fn of(files: Files) -> Self {
        match files {
            Files::Surge => Self::SURGE,
            Files::Large => Self::LARGE,
        }
    }
}

/// A page on the server: its files in the order they are fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page(pub Vec<Bytes>);

/// A standard normal number (Box and Muller 1958).
fn normal(random: &mut Stream) -> f64 {
    let (radius, angle) = (unit(random), unit(random));
    libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(std::f64::consts::TAU * angle)
}

/// Pareto of this shape on `from ..= to`, by the inverse of the truncated distribution.
fn pareto(shape: f64, from: f64, to: f64, random: &mut Stream) -> f64 {
    let rest = 1.0 - libm::pow(from / to, shape);
    from / libm::pow(1.0 - rest * (1.0 - unit(random)), 1.0 / shape)
}

impl WebModel {
    fn size(&self, random: &mut Stream) -> Bytes {
        let bytes = if unit(random) <= self.tail {
            pareto(1.0, self.tail_from, self.tail_to, random)
        } else {
            libm::exp(self.mu + self.sigma * normal(random))
        };
        Bytes::new((bytes as u64).max(1))
    }

    fn embedded_in_one(&self, random: &mut Stream) -> usize {
        match self.embedding {
            Embedding::Pareto { shape, from, to } => pareto(shape, from, to, random) as usize,
            Embedding::Geometric { mean } => {
                let more = 1.0 - 1.0 / mean.max(1.0);
                let mut count = 1;
                while unit(random) <= more {
                    count += 1;
                }
                count
            }
        }
    }

    /// The pages of a server, the most popular first. The same seed gives the same server.
    #[must_use]
    pub fn server(&self, seed: u64) -> Vec<Page> {
        let random = &mut stream(seed);
        let share = |share: f64| (self.files as f64 * share).round() as usize;
        let (base, embedded) = (share(self.base), share(self.embedded));
        let parts: Vec<Bytes> = (0..embedded).map(|_| self.size(random)).collect();
        let mut pages = Vec::with_capacity(self.files - embedded.min(self.files));
        for number in 0..self.files.saturating_sub(embedded) {
            let mut page = vec![self.size(random)];
            if number < base && !parts.is_empty() {
                for _ in 0..self.embedded_in_one(random) {
                    page.push(parts[random.next_u64() as usize % parts.len()]);
                }
            }
            pages.push(Page(page));
        }
        // Popularity has nothing to do with size (Fisher and Yates).
        for last in (1..pages.len()).rev() {
            pages.swap(last, random.next_u64() as usize % (last + 1));
        }
        pages
    }

    /// What a user asks for in the course of `duration` if everything came at once, a pause first.
    /// The same seed gives the same user, whatever the transport does.
    #[must_use]
    pub fn user(&self, server: &[Page], http: Http, duration: Span, seed: u64) -> Vec<Reply> {
        let random = &mut stream(seed);
        let mut sums: Vec<f64> = Vec::with_capacity(server.len());
        for rank in 1..=server.len() {
            sums.push(sums.last().unwrap_or(&0.0) + libm::pow(rank as f64, -self.popularity));
        }
        let total = sums.last().copied().unwrap_or(0.0);
        let mut replies = Vec::new();
        let mut thought = Span::ZERO;
        while !server.is_empty() {
            let think = Span::from_secs_f64(self.pause_from / libm::pow(unit(random), 1.0 / self.pause_shape));
            thought += think;
            let wanted = unit(random) * total;
            let page = &server[sums.partition_point(|sum| *sum < wanted).min(server.len() - 1)].0;
            if thought > duration {
                break;
            }
            let (base, embedded) = page.split_first().map_or((Bytes::new(1), &page[..]), |(base, rest)| (*base, rest));
            replies.push(Reply { think, bytes: base, ends_page: embedded.is_empty() });
            let at_once = [embedded.iter().fold(Bytes::ZERO, |sum, bytes| sum + *bytes)];
            let then = if http == Http::Pipelined && !embedded.is_empty() { &at_once[..] } else { embedded };
            for (number, bytes) in then.iter().enumerate() {
                replies.push(Reply { think: Span::ZERO, bytes: *bytes, ends_page: number + 1 == then.len() });
            }
        }
        replies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean bytes per page that users see, over many servers.
    fn mean_page(model: &WebModel) -> f64 {
        let (mut bytes, mut pages) = (0, 0);
        for seed in 0..100 {
            let server = model.server(seed);
            let replies = model.user(&server, Http::Persistent, Span::from_secs(36_000), 1000 + seed);
            bytes += replies.iter().map(|reply| reply.bytes.get()).sum::<u64>();
            pages += replies.iter().filter(|reply| reply.ends_page).count();
        }
        bytes as f64 / pages as f64
    }

    #[test]
    fn a_page_of_the_large_files_has_about_490_kb() {
        let mean = mean_page(&WebModel::LARGE);
        assert!((460_000.0..520_000.0).contains(&mean), "{mean}");
    }

    #[test]
    fn a_page_of_surge_has_about_17_kb() {
        let mean = mean_page(&WebModel::SURGE);
        assert!((15_000.0..19_000.0).contains(&mean), "{mean}");
    }

    #[test]
    fn large_files_have_a_median_of_150_kb_and_a_mean_of_248_kb() {
        let random = &mut stream(1);
        let mut sizes: Vec<u64> = (0..100_000).map(|_| WebModel::LARGE.size(random).get()).collect();
        sizes.sort_unstable();
        assert!((147_000..153_000).contains(&sizes[50_000]), "{}", sizes[50_000]);
        let mean = sizes.iter().sum::<u64>() / 100_000;
        assert!((244_000..252_000).contains(&mean), "{mean}");
        assert!((760_000..796_000).contains(&sizes[95_000]), "{}", sizes[95_000]);
    }

    #[test]
    fn pauses_are_at_least_two_seconds_and_seven_on_average() {
        let server = WebModel::LARGE.server(1);
        let replies = WebModel::LARGE.user(&server, Http::Pipelined, Span::from_secs(3_000_000), 1);
        let pauses: Vec<f64> =
            replies.iter().filter(|reply| !reply.think.is_zero()).map(|reply| reply.think.as_secs_f64()).collect();
        assert!(pauses.iter().all(|pause| *pause >= 2.0));
        let mean = pauses.iter().sum::<f64>() / pauses.len() as f64;
        assert!((6.0..8.0).contains(&mean), "{mean}");
    }

    #[test]
    fn the_same_pages_are_asked_for_whatever_the_connections() {
        let server = WebModel::SURGE.server(3);
        let of = |http| WebModel::SURGE.user(&server, http, Span::from_secs(600), 5);
        let pages = |replies: &[Reply]| -> Vec<u64> {
            let mut pages = vec![0];
            for reply in replies {
                *pages.last_mut().unwrap() += reply.bytes.get();
                if reply.ends_page {
                    pages.push(0);
                }
            }
            pages
        };
        assert_eq!(of(Http::Single), of(Http::Persistent));
        assert_eq!(pages(&of(Http::Single)), pages(&of(Http::Pipelined)));
        assert!(of(Http::Pipelined).len() < of(Http::Single).len());
    }

    #[test]
    fn a_server_has_the_pages_of_table_1() {
        let server = WebModel::SURGE.server(1);
        assert_eq!(server.len(), 1240, "600 with embedded files and 640 without");
        assert_eq!(server.iter().filter(|page| page.0.len() > 1).count(), 600);
        assert!(server.iter().all(|page| page.0.len() <= 151));
    }
}

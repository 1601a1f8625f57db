//! Who carries contestants in the place of the simulator, and what it does whatever they ask for.

use flowstart_congestion::StartConfig;
use flowstart_scenario::Dialect;
use flowstart_transport::EcnMode;

use crate::{Contestant, RaceError};

/// Hosts that are not simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// This machine's kernel.
    Kernel,
    /// This project's QUIC over an emulated path.
    EmulatedQuic,
    /// This project's QUIC over a real path.
    Quic,
}

/// What a modifier is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Pacing,
    Acks,
    Ecn,
    Dialect(Dialect),
    Aware,
}

impl Subject {
    /// What a word declines.
    fn declined_by(word: &str) -> Option<Self> {
        Some(match word {
            "unpaced" => Self::Pacing,
            "ack2" => Self::Acks,
            "noecn" => Self::Ecn,
            _ => return None,
        })
    }
}

impl Carrier {
    /// What it does about this whatever a contestant says; `None` if it does as the contestant
    /// says.
    fn instead(self, subject: Subject) -> Option<&'static str> {
        Some(match (self, subject) {
            (Self::Kernel, Subject::Pacing) => "the kernel's congestion control decides whether packets are paced",
            (Self::Kernel, Subject::Acks) => "the kernel acknowledges as Linux does",
            (Self::Kernel, Subject::Dialect(Dialect::Linux)) => "the kernel's hosts are Linux's already",
            (Self::Kernel, Subject::Dialect(Dialect::Ns3)) => {
                "the kernel's hosts are Linux's, and only simulated ones ns-3's"
            }
            (Self::Kernel, Subject::Ecn | Subject::Aware) | (Self::EmulatedQuic, Subject::Pacing) => return None,
            (Self::Quic, Subject::Pacing) => "across a real path packets are paced wherever nobody else spaces them",
            (_, Subject::Acks) => "over QUIC every packet is acknowledged at once",
            (_, Subject::Ecn) => "over QUIC every packet asks for ECN",
            (_, Subject::Dialect(_)) => "over QUIC packets leave and are acknowledged as this project's QUIC does it",
            (_, Subject::Aware) => "over QUIC no router is asked, for its packets have no room for a request",
        })
    }

    /// The same of a word that declines what is done here. Kernels do what these words ask for.
    fn contradicts(self, word: &str) -> Option<&'static str> {
        if self == Self::Kernel { None } else { self.instead(Subject::declined_by(word)?) }
    }

    /// Refuses contestants with a modifier that has no effect there, or with a queue where nobody
    /// can choose one: their results would stand under a wrong name.
    ///
    /// # Errors
    /// One sentence about the first of them, and what would be right.
    pub fn check<'a>(self, contestants: impl IntoIterator<Item = &'a Contestant>) -> Result<(), RaceError> {
        for contestant in contestants {
            if self == Self::Quic && contestant.queue.is_some() {
                let why = "a real path has the queues that it has: leave out what follows @";
                return Err(RaceError::new(format!("{contestant}: {why}")));
            }
            if self == Self::Quic && matches!(&contestant.start, StartConfig::Oracle(known) if known.steps.is_empty()) {
                let why = "nobody knows what a real path carries at every moment, and without that it is slow start";
                return Err(RaceError::new(format!("{contestant}: {why}")));
            }
            if self != Self::Kernel && contestant.start.asks_routers() {
                let why = "QUIC cannot carry it, for its packets have no room for a request to the routers";
                return Err(RaceError::new(format!("{contestant}: {why}")));
            }
            if self == Self::Kernel && contestant.ecn == EcnMode::Off && contestant.avoidance.name() == "dctcp" {
                let why = "the kernel's DCTCP asks for ECN whatever it is told";
                return Err(RaceError::new(format!("{contestant}: {why}: leave out \"/noecn\"")));
            }
            let modified = contestant.modifiers().into_iter();
            let without_effect = modified.filter_map(|(subject, word)| Some((self.instead(subject)?, word)));
            let contrary = contestant.asked().filter_map(|word| Some((self.contradicts(word)?, word.to_owned())));
            if let Some((why, word)) = without_effect.chain(contrary).next() {
                return Err(RaceError::new(format!("{contestant}: {why}: leave out \"/{word}\"")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MODIFIERS;

    fn read(text: &str) -> Contestant {
        text.parse().unwrap()
    }

    /// Which modifiers are refused, of a contestant whose usual way is the opposite of each.
    fn refused(carrier: Carrier) -> Vec<&'static str> {
        let of = |word: &str| match word {
            "ack2" => "paced_chirping+cubic",
            "noecn" => "dctcp",
            _ => "cubic",
        };
        let all = MODIFIERS.iter().map(|(word, _)| *word);
        let is_refused = |word: &&str| {
            let contestant = read(&format!("{}/{word}", of(word)));
            let Err(error) = carrier.check([&contestant]) else { return false };
            let (name, sentence) = (contestant.to_string(), error.to_string());
            assert!(sentence.starts_with(&name) && sentence.ends_with(&format!("leave out \"/{word}\"")), "{sentence}");
            true
        };
        all.filter(is_refused).collect()
    }

    #[test]
    fn what_has_no_effect_is_refused_and_what_has_one_is_not() {
        assert_eq!(refused(Carrier::Kernel), ["paced", "ack1", "ack2", "noecn", "linux", "ns3"]);
        let over_quic = ["ack1", "ack2", "ecn", "noecn", "linux", "ns3", "aware0", "aware50", "aware100"];
        assert_eq!(refused(Carrier::EmulatedQuic), over_quic);
        assert_eq!(refused(Carrier::Quic), [&["paced", "unpaced"][..], &over_quic].concat());
    }

    /// They were taken silently, and ECN was used.
    #[test]
    fn the_usual_way_is_refused_where_the_opposite_is_done() {
        assert_eq!(read("cubic/noecn/unpaced"), read("cubic"));
        for (carrier, words) in
            [(Carrier::EmulatedQuic, &["ack2", "noecn"][..]), (Carrier::Quic, &["ack2", "noecn", "unpaced"])]
        {
            for word in words {
                let error = carrier.check([&read(&format!("cubic/{word}"))]).unwrap_err().to_string();
                assert!(error.ends_with(&format!("leave out \"/{word}\"")), "{error}");
            }
        }
    }

    /// Slow start went by that name.
    #[test]
    fn nobody_is_omniscient_about_a_real_path() {
        let oracle = read("oracle+cubic");
        let error = Carrier::Quic.check([&oracle]).unwrap_err().to_string();
        assert!(error.starts_with("oracle+cubic: nobody knows"), "{error}");
        assert!(Carrier::EmulatedQuic.check([&oracle]).is_ok(), "an emulated path is known");
    }

    #[test]
    fn how_authors_run_it_is_no_modifier_and_any_of_several_contestants_is_found() {
        for plain in ["cubic", "dctcp", "paced_chirping+cubic", "paced_chirping+dctcp/ack1/ecn"] {
            for carrier in [Carrier::Kernel, Carrier::EmulatedQuic, Carrier::Quic] {
                assert!(carrier.check([&read(plain)]).is_ok(), "{plain}");
            }
        }
        assert!(Carrier::Kernel.check([&read("cubic/ack2/unpaced/noecn")]).is_ok());
        assert!(Carrier::EmulatedQuic.check([&read("cubic/unpaced")]).is_ok());
        let codel = read("cubic@codel");
        assert!(Carrier::Quic.check([&codel]).unwrap_err().to_string().ends_with("leave out what follows @"));
        assert!(Carrier::EmulatedQuic.check([&codel]).is_ok() && Carrier::Kernel.check([&codel]).is_ok());
        let error = Carrier::Kernel.check([&read("cubic"), &read("reno/noecn/ack1/linux")]).unwrap_err();
        assert!(error.to_string().ends_with("leave out \"/ack1\""), "{error}");
    }
}

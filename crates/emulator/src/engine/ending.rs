//! How an engine ends, and what it tells then.

use std::cmp::Reverse;
use std::sync::atomic::Ordering;

use flowstart_units::{Span, Time};

use super::frames::Handle;
#[cfg(test)]
use super::plan;
use super::{Engine, Step};
use crate::record::Fate;

impl Engine {
    /// When everything ends, as far as is known now.
    pub(super) fn end(&self) -> Time {
        Time::from_nanos(self.end.load(Ordering::Relaxed))
    }

    /// Everything has ended at `end`: takes in what was sent until then, and writes down what is
    /// still on its way.
    pub(super) fn finish(&mut self, now: Time, end: Time) {
        let newest = |engine: &Self| engine.arrivals.back().map_or(Time::ZERO, |(time, _)| *time);
        while self.take_in() > 0 && newest(self) <= end {
            self.proceed(now, end);
        }
        self.proceed(now, end);
        self.count_full();
        self.ended = true;
        let at_links = self.pool.waiting();
        let on_the_way = self.steps.iter().filter_map(|Reverse(due)| match due.what {
            Step::Reach(handle) => Some((due.time, handle)),
            Step::Wake(_) => None,
        });
        let on_the_way = on_the_way.chain(self.arrivals.iter().copied()).filter_map(|(time, handle)| {
            // Who has passed a link already has been written down there.
            let sent_before = handle.step == 0 && handle.arrived <= end;
            let first = self.routes[usize::from(handle.route)].links.first().filter(|_| sent_before)?;
            Some((*first, Handle { arrived: time.max(end + Span::from_nanos(1)), ..handle }))
        });
        let mut stayed: Vec<(u16, Handle)> = at_links.chain(on_the_way).collect();
        stayed.sort_by_key(|(_, handle)| handle.arrived);
        for (link, handle) in stayed {
            self.note(link, &handle, Fate::Stayed { at: end }, Time::NEVER);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.flush();
        }
    }

    /// Frames that found no room in a ring are lost.
    pub(super) fn count_full(&mut self) {
        let full: u64 = self.entrances.iter().map(|entrance| entrance.ring.dropped()).sum();
        self.counts.no_room += full;
    }

    /// Faults that tests ask for.
    #[cfg(test)]
    pub(super) fn fail(&self) {
        match self.fault {
            Some(plan::Fault::Panic) if self.counts.arrived > 0 => panic!("on purpose"),
            Some(plan::Fault::Hang) if self.counts.arrived > 0 => {
                plan::HANGS.store(true, Ordering::Relaxed);
                loop {
                    std::thread::sleep(std::time::Duration::from_secs(1));
                }
            }
            _ => {}
        }
    }
}

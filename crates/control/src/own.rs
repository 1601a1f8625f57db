//! Algorithms from outside this project, by name: whoever has one tells its name and how it is
//! made, and it takes part wherever a name is read.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
#[cfg(feature = "std")]
use alloc::vec::Vec;

use alloc::sync::Arc;
use core::fmt;
#[cfg(feature = "std")]
use std::sync::{PoisonError, RwLock};

use crate::Connection;
#[cfg(feature = "std")]
use crate::names::canonical;

type Make<T> = dyn Fn(Connection) -> Box<T> + Send + Sync;

/// An algorithm from outside, of the kind `T` ([`dyn OwnStart`](crate::OwnStart) or
/// [`dyn OwnAvoidance`](crate::OwnAvoidance)).
///
/// Two of them are equal if they have the same name and are made by the same function.
pub struct Own<T: ?Sized> {
    name: &'static str,
    about: &'static str,
    wants_ecn: bool,
    draws: bool,
    make: Arc<Make<T>>,
}

impl<T: ?Sized> Own<T> {
    /// The algorithm called `name`, of which `about` says in a line what it is. `make` makes one
    /// for every connection that runs it, from any thread.
    ///
    /// # Errors
    /// If the name is not made of 1 to 64 lower-case letters, digits and underscores: other signs
    /// mean something in the name of a contestant.
    pub fn new(
        name: &'static str,
        about: &'static str,
        make: impl Fn(Connection) -> Box<T> + Send + Sync + 'static,
    ) -> Result<Self, OwnError> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
            return Err(OwnError(format!(
                "the name {name:?} of an algorithm must be 1 to 64 lower-case letters, digits and underscores"
            )));
        }
        Ok(Self { name, about, wants_ecn: false, draws: false, make: Arc::new(make) })
    }

    /// The same, for an avoidance that answers accurate congestion marks on every packet (RFC 8257
    /// section 3): its flows send ECN-capable packets and meet a queue that marks.
    #[must_use]
    pub fn with_ecn(self) -> Self {
        Self { wants_ecn: true, ..self }
    }

    /// The same, for an algorithm that draws random numbers from the seed of its connection: runs
    /// with it differ, and are repeated where they are asked for.
    #[must_use]
    pub fn with_draws(self) -> Self {
        Self { draws: true, ..self }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it is, in a line.
    #[must_use]
    pub fn about(&self) -> &'static str {
        self.about
    }

    /// True if its flows should send ECN-capable packets.
    #[must_use]
    pub fn wants_ecn(&self) -> bool {
        self.wants_ecn
    }

    /// True if it draws random numbers from the seed of its connection.
    #[must_use]
    pub fn draws(&self) -> bool {
        self.draws
    }

    /// One for this connection.
    #[must_use]
    pub fn make(&self, connection: Connection) -> Box<T> {
        (self.make)(connection)
    }
}

impl<T: ?Sized> Clone for Own<T> {
    fn clone(&self) -> Self {
        Self { make: Arc::clone(&self.make), ..*self }
    }
}

impl<T: ?Sized> PartialEq for Own<T> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.make, &other.make)
    }
}

impl<T: ?Sized> fmt::Debug for Own<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Own").field(&self.name).finish()
    }
}

/// As `{ name = "NAME" }`, as every other algorithm without constants.
#[cfg(feature = "serde")]
impl<T: ?Sized> serde::Serialize for Own<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut table = serializer.serialize_struct("Own", 1)?;
        table.serialize_field("name", self.name)?;
        table.end()
    }
}

/// Why an algorithm from outside cannot be taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnError(String);

impl fmt::Display for OwnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for OwnError {}

#[cfg(feature = "std")]
/// The algorithms from outside that this program has registered, of one kind.
pub struct OwnNames<T: ?Sized>(RwLock<Vec<Own<T>>>);

#[cfg(feature = "std")]
impl<T: ?Sized> OwnNames<T> {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(RwLock::new(Vec::new()))
    }

    /// From now on `own` is found by its name. The one that had this name before is replaced, if
    /// it was from outside too.
    pub fn register(&self, own: Own<T>) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.name != own.name);
        all.push(own);
    }

    /// The one of this name. Case and hyphens do not matter.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Own<T>> {
        let name = canonical(name);
        self.all().into_iter().find(|own| own.name == name)
    }

    /// All, in the order in which they were registered.
    #[must_use]
    pub fn all(&self) -> Vec<Own<T>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(feature = "std")]
impl<T: ?Sized> Default for OwnNames<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl OwnError {
    /// `name` is the name of an algorithm of this project.
    #[must_use]
    pub fn taken(kind: &str, name: &str) -> Self {
        Self(format!("the {kind} {name:?} is part of flowstart; an own one needs another name"))
    }
}

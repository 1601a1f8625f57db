//! One declaration per kind of algorithm: from it come the enum of configurations with its names,
//! reading, writing and describing, and the enum of algorithms in operation with its dispatch.

/// Declares all algorithms of a kind. One entry each, at the root of a crate:
///
/// ```text
/// /// HyStart as in Linux CUBIC.
/// [pub mod hystart::{Hystart, HystartConfig}]
/// Hystart(config: HystartConfig) => Hystart {
///     names: "hystart" | "hybrid_slow_start",
///     about: "slow start that leaves on long ACK trains or rising delay",
///     new: |connection| Hystart::new(config, connection.paced, connection.mss),
/// }
/// ```
///
/// The brackets declare the module and what the crate shows of it; without them the types come
/// from elsewhere. An algorithm without constants has no parentheses. The first name is the one
/// that is printed; the others are read as well. `new` makes the algorithm of the constants and the
/// [`Connection`](crate::Connection).
///
/// Constants implement the trait that the head names behind `with`; its method `constants` gives
/// them as that trait. `dispatch` names a macro for what follows in the crate:
/// `dispatch!(self, it => it.method())`.
#[macro_export]
macro_rules! registry {
    (@constants) => { &() };
    (@constants $constants:ident) => { $constants.constants() };

    (@read $fields:ident, $variant:expr) => {
        <$crate::serialize::NoFields as serde::Deserialize>::deserialize($fields).map(|_| $variant)
    };
    (@read $fields:ident, $variant:expr, $config:ty) => {
        <$config as serde::Deserialize>::deserialize($fields).map($variant)
    };

    (@table $generator:ident, $name:literal) => { $crate::serialize::bare_table($name) };
    (@table $generator:ident, $name:literal, $config:ty) => {
        $crate::serialize::table::<$config>($generator, $name)
    };

    (
        kind $kind:literal, schema $schema:literal;
        $(#[$config_doc:meta])*
        config $Config:ident with $Constants:path;
        $(#[$algorithm_doc:meta])*
        algorithm $Algorithm:ident is $Trait:path, from outside $Own:path;
        dispatch $d:tt $dispatch:ident;
        $(
            $(#[$doc:meta])*
            $([$vis:vis mod $module:ident::{$($item:ident),*}])?
            $variant:ident $(($constants:ident: $config:ty))? => $state:ty {
                names: $name:literal $(| $alias:literal)*,
                about: $about:literal,
                new: |$connection:pat_param| $new:expr,
            }
        )*
    ) => {
        $($(
            $vis mod $module;
            pub use $module::{$($item),*};
        )?)*

        $(#[$config_doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(tag = "name"))]
        pub enum $Config {
            $(
                $(#[$doc])*
                #[cfg_attr(feature = "serde", serde(rename = $name))]
                $variant $(($config))?,
            )*
            /// One from outside this project.
            #[cfg_attr(feature = "serde", serde(untagged))]
            Own($crate::Own<dyn $Own>),
        }

        /// Those from outside that have been registered.
        #[cfg(feature = "std")]
        static OWN: $crate::OwnNames<dyn $Own> = $crate::OwnNames::new();

        impl $Config {
            #[doc = concat!("A ", $kind, " from outside, called `name`, of which `about` says in a line what it is.")]
            /// `make` makes one for every connection that runs it, from any thread.
            ///
            /// # Errors
            /// If the name is not made of lower-case letters, digits and underscores.
            pub fn own(
                name: &'static str,
                about: &'static str,
                make: impl Fn($crate::Connection) -> ::alloc::boxed::Box<dyn $Own> + Send + Sync + 'static,
            ) -> Result<$crate::Own<dyn $Own>, $crate::OwnError> {
                $crate::Own::new(name, about, make)
            }

            #[doc = concat!("From now on `own` is a ", $kind, " wherever a name is read in this program:")]
            /// in contestants, scenario files, races, grids. An own one that had the name before is
            /// replaced.
            ///
            /// # Errors
            /// If the name is taken by an algorithm of this project.
            #[cfg(feature = "std")]
            pub fn register(own: $crate::Own<dyn $Own>) -> Result<(), $crate::OwnError> {
                match Self::from_name(own.name()) {
                    Ok(Self::Own(_)) | Err(_) => {
                        OWN.register(own);
                        Ok(())
                    }
                    Ok(_) => Err($crate::OwnError::taken($kind, own.name())),
                }
            }

            /// Name and line of those that have been [registered](Self::register).
            #[must_use]
            #[cfg(feature = "std")]
            pub fn registered() -> ::alloc::vec::Vec<(&'static str, &'static str)> {
                OWN.all().iter().map(|own| (own.name(), own.about())).collect()
            }

            #[doc = concat!("The names of all, as [`from_name`](Self::from_name) reads and [`name`](Self::name) prints them.")]
            pub const NAMES: &[&str] = &[$($name),*];

            /// All names, each with a line about what it is.
            pub const ABOUT: &[(&str, &str)] = &[$(($name, $about)),*];

            #[doc = concat!("The ", $kind, " of this name with its default constants. Case, hyphens and \"++\" do not matter.")]
            ///
            /// # Errors
            #[doc = concat!("If no ", $kind, " has this name; the message suggests the nearest one.")]
            pub fn from_name(name: &str) -> Result<Self, $crate::UnknownName> {
                match $crate::names::canonical(name).as_str() {
                    $($name $(| $alias)* => Ok(Self::$variant $((<$config>::default()))?),)*
                    _ => {
                        #[cfg(feature = "std")]
                        if let Some(own) = OWN.find(name) {
                            return Ok(Self::Own(own));
                        }
                        Err($crate::UnknownName::new($kind, name, Self::NAMES))
                    }
                }
            }

            #[doc = concat!("The name of this ", $kind, ".")]
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)*
                    Self::Own(own) => own.name(),
                }
            }

            fn constants(&self) -> &dyn $Constants {
                match self {
                    $(Self::$variant $(($constants))? => $crate::registry!(@constants $($constants)?),)*
                    Self::Own(own) => own,
                }
            }
        }

        #[cfg(feature = "serde")]
        impl $crate::serialize::Named for $Config {
            const KIND: &'static str = $kind;

            fn with_defaults(name: &str) -> Result<Self, $crate::UnknownName> {
                Self::from_name(name)
            }

            fn with_fields<'de, D: serde::Deserializer<'de>>(name: &str, fields: D) -> Result<Self, D::Error> {
                match Self::from_name(name).map_err(serde::de::Error::custom)? {
                    $(Self::$variant { .. } => $crate::registry!(@read fields, Self::$variant $(, $config)?),)*
                    Self::Own(own) => $crate::registry!(@read fields, Self::Own(own)),
                }
            }
        }

        #[cfg(feature = "serde")]
        impl<'de> serde::Deserialize<'de> for $Config {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::serialize::deserialize(deserializer)
            }
        }

        #[cfg(feature = "serde")]
        impl schemars::JsonSchema for $Config {
            fn schema_name() -> alloc::borrow::Cow<'static, str> {
                $schema.into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let tables = ::alloc::vec![$($crate::registry!(@table generator, $name $(, $config)?)),*];
                $crate::serialize::schema(Self::NAMES, tables)
            }
        }

        $(#[$algorithm_doc])*
        #[derive(Clone)]
        pub enum $Algorithm {
            $(
                $(#[$doc])*
                $variant($state),
            )*
            /// An algorithm from outside this crate.
            External(::alloc::boxed::Box<dyn $Own>),
        }

        impl $Algorithm {
            #[doc = concat!("The ", $kind, " that `setup` names.")]
            #[must_use]
            pub fn new<'a>(setup: impl Into<$crate::Setup<'a, $Config>>) -> Self {
                let $crate::Setup { config, connection } = setup.into();
                match config {
                    $($Config::$variant $(($constants))? => {
                        let $connection = connection;
                        Self::$variant($new)
                    })*
                    $Config::Own(own) => Self::External(own.make(connection)),
                }
            }
        }

        impl core::fmt::Debug for $Algorithm {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self {
                    $(Self::$variant(algorithm) => core::fmt::Debug::fmt(algorithm, f),)*
                    Self::External(_) => f.write_str("External"),
                }
            }
        }

        macro_rules! $dispatch {
            ($d this:ident, $d it:ident => $d call:expr) => {
                match $d this {
                    $($Algorithm::$variant($d it) => $d call,)*
                    $Algorithm::External($d it) => $d call,
                }
            };
        }
    };
}

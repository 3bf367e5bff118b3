//! The macro that declares settings.

/// Declares a mapping of settings: a struct with one field per key.
///
/// A key is declared as `name: FieldType = default`, or `name: FieldType as KeyType = default` where its
/// description needs more than its Rust type: `usize as Size`. Its documentation is its description everywhere:
/// here, in the JSON Schema, in `config/hookyard.yaml` and in `docs/settings.md`. `#[example = "…"]` is a value as a
/// settings file has it.
///
/// A `section` joins the one in the layer below it; an `entry` is one of several under names of the file's own.
macro_rules! settings {
    (
        $(#[$attribute:meta])*
        pub section $section:ident { $($keys:tt)+ }
    ) => {
        $crate::config::settings::declare::settings! { $(#[$attribute])* pub entry $section { $($keys)+ } }

        impl Default for $section {
            fn default() -> Self {
                $crate::config::settings::keys::KeySet::declared()
            }
        }

        impl $crate::config::settings::keys::KeyType for $section {
            type Field = Self;

            fn read(value: &$crate::dialect::Value<'_>, field: &mut Self) {
                if let Some(mapping) = value.mapping() {
                    $crate::config::settings::keys::KeySet::read_keys(field, &mapping);
                }
            }

            fn push_paths(path: String, paths: &mut Vec<String>) {
                paths.push(path.clone());
                <Self as $crate::config::settings::keys::KeySet>::push_key_paths(&(path + "."), paths);
            }
        }

        #[cfg(test)]
        impl $crate::config::settings::described::DescribedKey for $section {
            fn describe(default: &Self) -> $crate::config::settings::described::KeyShape {
                let keys = $crate::config::settings::described::DescribedKeys::describe_keys(default);
                $crate::config::settings::described::KeyShape::Section(keys)
            }
        }
    };
    (
        $(#[$attribute:meta])*
        pub entry $entry:ident {
            $(
                $(#[doc = $doc:literal])+
                $(#[example = $example:literal])?
                $key:ident: $field:ty $(as $key_type:ty)? = $default:expr,
            )+
        }
    ) => {
        $(#[$attribute])*
        pub struct $entry {
            $($(#[doc = $doc])+ pub $key: $field,)+
        }

        impl $crate::config::settings::keys::KeySet for $entry {
            const NAMES: &'static [&'static str] = &[$(stringify!($key)),+];

            fn declared() -> Self {
                Self { $($key: $default,)+ }
            }

            fn read_keys(&mut self, mapping: &$crate::dialect::Mapping<'_>) {
                use $crate::config::settings::{
                    declare::{first, key_type},
                    keys::KeyType,
                };

                mapping.allow_only(Self::NAMES);
                $(
                    let example = first!($(Some($example),)? None);
                    <key_type!($field $(as $key_type)?) as KeyType>::read_key(
                        mapping, stringify!($key), example, &mut self.$key,
                    );
                )+
            }

            fn push_key_paths(prefix: &str, paths: &mut Vec<String>) {
                use $crate::config::settings::{declare::key_type, keys::KeyType};

                $(
                    let path = format!("{prefix}{}", stringify!($key));
                    <key_type!($field $(as $key_type)?) as KeyType>::push_paths(path, paths);
                )+
            }
        }

        #[cfg(test)]
        impl $crate::config::settings::described::DescribedKeys for $entry {
            fn describe_keys(&self) -> Vec<$crate::config::settings::described::KeyDescription> {
                use $crate::config::settings::{
                    declare::{first, key_type},
                    described::{DescribedKey, KeyDescription},
                };

                vec![$(KeyDescription {
                    name: stringify!($key),
                    about: concat!($($doc),+).trim().to_owned(),
                    example: first!($(Some($example),)? None),
                    shape: <key_type!($field $(as $key_type)?) as DescribedKey>::describe(&self.$key),
                }),+]
            }
        }
    };
}

/// The key type of a declaration: the one that is named, or else that of the field.
macro_rules! key_type {
    ($field:ty) => {
        $field
    };
    ($field:ty as $key_type:ty) => {
        $key_type
    };
}

/// The first of its arguments.
macro_rules! first {
    ($first:expr $(, $rest:expr)*) => {
        $first
    };
}

pub(super) use {first, key_type, settings};

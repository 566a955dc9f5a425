//! Our messages under another package's name: where `crazyflie_interfaces` is installed, clients use its types, which
//! have the same fields as ours, and so the memory of ours serves them.
//!
//! What stands in for what is decided once, at the start, from the definitions in the environment. Types whose
//! definitions differ keep our name. Nothing here creates topics.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rosidl_runtime_rs::{Message, RmwMessage, Service};

use crate::rcl_raw::TypeSupport;

/// Our own package.
const OWN: &str = "crazyflie_openlink";
/// Type supports of other packages by our type's kind and name, as addresses of constant data.
static STAND_INS: OnceLock<BTreeMap<String, usize>> = OnceLock::new();

/// A package whose types are used instead of ours where it is installed.
#[derive(Clone, Copy, Debug)]
pub struct Package {
    /// Its name.
    pub name: &'static str,
    /// `msg/Name` and `srv/Name` of each type.
    pub types: &'static [&'static str],
}

/// Why a type of an installed package is not used.
#[derive(Debug, thiserror::Error)]
enum Unfit {
    #[error("its definition differs from ours: {0}")]
    Differs(String),
    #[error("its definition cannot be read: {0}")]
    Unreadable(String),
    #[error("{0}")]
    Library(#[from] crate::rcl_raw::RawError),
}

/// Looks for these packages in the environment; what is used is in force from now on, and each exception is one
/// warning. Returns `package/kind/Name` of all types that are used. Later calls change nothing.
pub fn choose(packages: &[Package]) -> Vec<String> {
    let prefixes: Vec<PathBuf> = std::env::var_os("AMENT_PREFIX_PATH")
        .map(|paths| std::env::split_paths(&paths).collect())
        .unwrap_or_default();
    let (mut chosen, mut names) = (BTreeMap::new(), Vec::new());
    for package in packages {
        let Some(share) = find(&prefixes, package.name) else {
            continue;
        };
        for kind_and_name in package.types {
            let full = format!("{}/{kind_and_name}", package.name);
            match load(&prefixes, &share, package.name, kind_and_name) {
                Ok(handle) => {
                    chosen.insert((*kind_and_name).to_owned(), handle);
                    names.push(full);
                }
                Err(why) => tracing::warn!("{full} is not used: {why}"),
            }
        }
    }
    if STAND_INS.set(chosen).is_err() {
        return Vec::new();
    }
    names
}

fn find(prefixes: &[PathBuf], package: &str) -> Option<PathBuf> {
    let shares = prefixes
        .iter()
        .map(|prefix| prefix.join("share").join(package));
    shares
        .into_iter()
        .find(|share| share.join("package.xml").is_file() || share.join("msg").is_dir())
}

fn load(
    prefixes: &[PathBuf],
    share: &Path,
    package: &str,
    kind_and_name: &str,
) -> Result<usize, Unfit> {
    let own = find(prefixes, OWN).ok_or_else(|| Unfit::Unreadable(format!("no share/{OWN}")))?;
    compare(&own, share, package, kind_and_name)?;
    let full = format!("{package}/{kind_and_name}");
    let support = if kind_and_name.starts_with("srv/") {
        TypeSupport::load_service(&full)?
    } else {
        TypeSupport::load(&full)?
    };
    Ok(support.leak() as usize)
}

/// Both packages must have the same fields in the same order, also in the types of their own that these name.
fn compare(own: &Path, other: &Path, package: &str, kind_and_name: &str) -> Result<(), Unfit> {
    let ours = fields(own, OWN, kind_and_name)?;
    let theirs = fields(other, package, kind_and_name)?;
    if ours != theirs {
        return Err(Unfit::Differs(format!("{theirs:?} instead of {ours:?}")));
    }
    let nested = ours.iter().filter_map(|field| own_type(field));
    nested
        .into_iter()
        .try_for_each(|name| compare(own, other, package, &format!("msg/{name}")))
}

/// `Type name` of each field, without comments, constants and the package's own name.
fn fields(share: &Path, package: &str, kind_and_name: &str) -> Result<Vec<String>, Unfit> {
    let extension = kind_and_name.split('/').next().unwrap_or_default();
    let path = share.join(format!("{kind_and_name}.{extension}"));
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Unfit::Unreadable(format!("{}: {error}", path.display())))?;
    Ok(text
        .lines()
        .filter_map(|line| field(line, package))
        .collect())
}

fn field(line: &str, package: &str) -> Option<String> {
    let line = line.split('#').next().unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().collect();
    let (first, rest) = words.split_first()?;
    let is_constant = rest.iter().any(|word| word.contains('='));
    let first = first.trim_start_matches(&format!("{package}/"));
    let name = rest.first().copied().unwrap_or_default();
    (!is_constant).then(|| format!("{first} {name}"))
}

/// The type of a field, where it is a message of the same package.
fn own_type(field: &str) -> Option<&str> {
    let name = field.split([' ', '[']).next()?;
    let own = !name.contains('/') && name.starts_with(|c: char| c.is_ascii_uppercase());
    own.then_some(name)
}

fn stand_in(type_name: &str) -> Option<*const c_void> {
    let address = STAND_INS.get()?.get(type_name)?;
    Some(*address as *const c_void)
}

/// A message of ours under the name that [`choose`] has found for it.
#[derive(Clone, Debug, Default, PartialEq)]
#[repr(transparent)]
pub struct Named<M>(pub M);

/// [`Named`] in the middleware's layout.
#[derive(Clone, Debug, Default)]
#[repr(transparent)]
pub struct NamedRmw<M>(M);

impl<M: Message> Message for Named<M> {
    type RmwMsg = NamedRmw<M::RmwMsg>;

    fn into_rmw_message(message: Cow<'_, Self>) -> Cow<'_, Self::RmwMsg> {
        let inner = match message {
            Cow::Owned(named) => M::into_rmw_message(Cow::Owned(named.0)).into_owned(),
            Cow::Borrowed(named) => M::into_rmw_message(Cow::Borrowed(&named.0)).into_owned(),
        };
        Cow::Owned(NamedRmw(inner))
    }

    fn from_rmw_message(message: Self::RmwMsg) -> Self {
        Self(M::from_rmw_message(message.0))
    }
}

impl<M: RmwMessage> Message for NamedRmw<M> {
    type RmwMsg = Self;

    fn into_rmw_message(message: Cow<'_, Self>) -> Cow<'_, Self> {
        message
    }

    fn from_rmw_message(message: Self) -> Self {
        message
    }
}

impl<M: RmwMessage> RmwMessage for NamedRmw<M> {
    const TYPE_NAME: &'static str = M::TYPE_NAME;

    fn get_type_support() -> *const c_void {
        let name = M::TYPE_NAME
            .split_once('/')
            .map_or(M::TYPE_NAME, |(_, name)| name);
        stand_in(name).unwrap_or_else(M::get_type_support)
    }
}

/// A service of ours under the name that [`choose`] has found for it.
#[derive(Debug)]
pub struct NamedService<S>(PhantomData<S>);

impl<S: Service> Service for NamedService<S> {
    type Request = S::Request;
    type Response = S::Response;

    fn get_type_support() -> *const c_void {
        // A service's Rust type has the service's name.
        let name = std::any::type_name::<S>()
            .rsplit("::")
            .next()
            .unwrap_or_default();
        stand_in(&format!("srv/{name}")).unwrap_or_else(S::get_type_support)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(folder: &Path, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let share = folder.join("share").join(name);
        for (file, text) in files {
            let path = share.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        share
    }

    #[test]
    fn comments_constants_and_the_own_package_do_not_matter() {
        let folder = tempfile::tempdir().unwrap();
        let ours = [
            ("msg/A.msg", "# x\nuint8 K = 1\nB[] list # y\n"),
            ("msg/B.msg", "float32 z\n"),
        ];
        let theirs = [
            ("msg/A.msg", "other/B[]   list\n"),
            ("msg/B.msg", "float32 z\nint32 Q=3\n"),
        ];
        let own = package(folder.path(), OWN, &ours);
        let other = package(folder.path(), "other", &theirs);
        compare(&own, &other, "other", "msg/A").unwrap();
    }

    #[test]
    fn a_difference_in_a_nested_type_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let ours = [("msg/A.msg", "B[] list\n"), ("msg/B.msg", "float32 z\n")];
        let theirs = [("msg/A.msg", "B[] list\n"), ("msg/B.msg", "float64 z\n")];
        let own = package(folder.path(), OWN, &ours);
        let other = package(folder.path(), "other", &theirs);
        let why = compare(&own, &other, "other", "msg/A")
            .unwrap_err()
            .to_string();
        assert!(why.contains("float64 z"), "{why}");
        assert!(
            compare(&own, &other, "other", "msg/C")
                .unwrap_err()
                .to_string()
                .contains("C.msg")
        );
    }
}

//! Type supports by name: what `package/msg/Name` is to the middleware, from the package's own library.

use std::ffi::c_void;

use libloading::{Library, Symbol};

use super::RawError;

/// The type support of one message or service type; keeps its library loaded.
#[derive(Debug)]
pub struct TypeSupport {
    handle: *const c_void,
    _library: Library,
}

// SAFETY: the handle points to constant data of the library.
unsafe impl Send for TypeSupport {}
// SAFETY: see above.
unsafe impl Sync for TypeSupport {}

impl TypeSupport {
    /// Loads the type support of the message `package/msg/Name`, whose package must be in the library path.
    ///
    /// # Errors
    /// A malformed name, a library that cannot be loaded, or a type that the library does not have.
    pub fn load(type_name: &str) -> Result<Self, RawError> {
        Self::get(type_name, "message")
    }

    /// Loads the type support of the service `package/srv/Name`.
    ///
    /// # Errors
    /// As for [`TypeSupport::load`].
    pub fn load_service(type_name: &str) -> Result<Self, RawError> {
        Self::get(type_name, "service")
    }

    fn get(type_name: &str, what: &str) -> Result<Self, RawError> {
        let parts: Vec<_> = type_name.split('/').collect();
        let &[package, kind @ ("msg" | "srv" | "action"), name] = parts.as_slice() else {
            let why = format!("type {type_name:?} is not of the form package/msg/Name");
            return Err(RawError(why));
        };
        let file = format!("lib{package}__rosidl_typesupport_c.so");
        let symbol = format!(
            "rosidl_typesupport_c__get_{what}_type_support_handle__{package}__{kind}__{name}"
        );
        // SAFETY: type support libraries run no code at loading but the registration of constant tables.
        let library = unsafe { Library::new(&file) }
            .map_err(|error| RawError(format!("type {type_name}: {error}")))?;
        // SAFETY: every rosidl type support library exports this getter with this signature.
        let handle = unsafe {
            let getter: Symbol<'_, unsafe extern "C" fn() -> *const c_void> = library
                .get(symbol.as_bytes())
                .map_err(|_| RawError(format!("type {type_name}: {file} does not have it")))?;
            getter()
        };
        Ok(Self {
            handle,
            _library: library,
        })
    }

    /// The type support for as long as the process lives, for types that are chosen once at the start.
    #[must_use]
    pub fn leak(self) -> *const c_void {
        let handle = self.handle;
        std::mem::forget(self);
        handle
    }

    pub(super) const fn handle(&self) -> *const c_void {
        self.handle
    }
}

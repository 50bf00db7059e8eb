//! Handlers of XLA's foreign-function interface in Rust, without dependencies.
//!
//! The structures have the layout of version 0.3 of the C interface (`xla/ffi/api/c_api.h` of
//! jaxlib 0.10.2); newer versions of jaxlib call such handlers, too. A handler is a function
//! `fn(&Call) -> Result<(), Error>`, exported by [`handler!`]:
//!
//! ```ignore
//! mod primax_ffi;
//! use primax_ffi::{handler, Call, Error};
//!
//! fn scale(call: &Call) -> Result<(), Error> {
//!     let (x, mut y) = (call.arg::<f32>(0)?, call.ret::<f32>(0)?);
//!     let by: f32 = call.attr("by")?;
//!     for (y, x) in y.iter_mut().zip(x.iter()) {
//!         *y = by * x;
//!     }
//!     Ok(())
//! }
//! handler!(acme_scale = scale, args: 1, rets: 1, attrs: ["by"]);
//! ```
//!
//! A panic becomes an error of the call. Rust 1.82 or newer.
#![allow(dead_code)]

use std::any::Any;
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void, CString};
use std::ops::{Deref, DerefMut};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::{ptr, slice};

#[cfg(panic = "abort")]
compile_error!("a panic must become an error of the call: remove panic = \"abort\"");

/// The structures of the C interface.
pub mod c {
    use super::*;

    pub const MAJOR: c_int = 0;
    pub const MINOR: c_int = 3;
    pub const EXTENSION_METADATA: c_int = 1;
    pub const EXECUTE: c_int = 3;
    pub const BUFFER: c_int = 1;
    pub const ATTR_ARRAY: c_int = 1;
    pub const ATTR_DICTIONARY: c_int = 2;
    pub const ATTR_SCALAR: c_int = 3;
    pub const ATTR_STRING: c_int = 4;

    #[repr(C)]
    pub struct Extension {
        pub struct_size: usize,
        pub kind: c_int,
        pub next: *mut Extension,
    }

    #[repr(C)]
    pub struct Version {
        pub struct_size: usize,
        pub extension_start: *mut Extension,
        pub major: c_int,
        pub minor: c_int,
    }

    #[repr(C)]
    pub struct Metadata {
        pub struct_size: usize,
        pub version: Version,
        pub traits: u32,
        pub state_type_id: i64,
    }

    #[repr(C)]
    pub struct MetadataExtension {
        pub base: Extension,
        pub metadata: *mut Metadata,
    }

    /// An error; only XLA knows its contents.
    #[repr(C)]
    pub struct Failure {
        _private: [u8; 0],
    }

    #[repr(C)]
    pub struct ErrorCreate {
        pub struct_size: usize,
        pub extension_start: *mut Extension,
        pub message: *const c_char,
        pub code: c_int,
    }

    /// The beginning of the table of functions; handlers use only the first of them.
    #[repr(C)]
    pub struct Api {
        pub struct_size: usize,
        pub extension_start: *mut Extension,
        pub version: Version,
        pub internal: *const c_void,
        pub error_create: unsafe extern "C" fn(*mut ErrorCreate) -> *mut Failure,
    }

    #[repr(C)]
    pub struct Buffer {
        pub struct_size: usize,
        pub extension_start: *mut Extension,
        pub dtype: c_int,
        pub data: *mut c_void,
        pub rank: i64,
        pub dims: *const i64,
    }

    /// Operands, or results.
    #[repr(C)]
    pub struct Buffers {
        pub struct_size: usize,
        pub extension_start: *mut Extension,
        pub size: i64,
        pub kinds: *const c_int,
        pub values: *const *const Buffer,
    }

    #[repr(C)]
    pub struct Bytes {
        pub data: *const u8,
        pub size: usize,
    }

    #[repr(C)]
    pub struct Scalar {
        pub dtype: c_int,
        pub value: *const c_void,
    }

    #[repr(C)]
    pub struct Array {
        pub dtype: c_int,
        pub size: usize,
        pub data: *const c_void,
    }

    #[repr(C)]
    pub struct Attrs {
        pub struct_size: usize,
        pub extension_start: *mut Extension,
        pub size: i64,
        pub kinds: *const c_int,
        pub names: *const *const Bytes,
        pub values: *const *const c_void,
    }

    #[repr(C)]
    pub struct CallFrame {
        pub struct_size: usize,
        pub extension_start: *mut Extension,
        pub api: *const Api,
        pub context: *mut c_void,
        pub stage: c_int,
        pub args: Buffers,
        pub rets: Buffers,
        pub attrs: Attrs,
    }
}

/// An error of a call, which is raised in Python as `JaxRuntimeError`.
#[derive(Debug, Clone)]
pub struct Error {
    /// A status code: 3 is INVALID_ARGUMENT, 12 UNIMPLEMENTED, 13 INTERNAL.
    pub code: c_int,
    pub message: String,
}

impl Error {
    /// The operands or attributes of the call are wrong.
    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Error {
            code: 3,
            message: message.into(),
        }
    }

    /// The computation failed.
    pub fn internal(message: impl Into<String>) -> Self {
        Error {
            code: 13,
            message: message.into(),
        }
    }
}

/// Types of elements.
///
/// # Safety
/// The type has the size of the elements of `DTYPE`, and all of their bit patterns are its values.
pub unsafe trait Element: Copy + 'static {
    const DTYPE: c_int;
}

/// An element of a boolean array: 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(transparent)]
pub struct Pred(pub u8);

/// The bits of a float16.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(transparent)]
pub struct F16(pub u16);

/// The bits of a bfloat16, the upper half of a float32.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(transparent)]
pub struct Bf16(pub u16);

/// A complex number.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Complex<T> {
    pub re: T,
    pub im: T,
}

macro_rules! elements {
    ($($kind:ty, $dtype:literal, $name:literal;)*) => {
        $(unsafe impl Element for $kind {
            const DTYPE: c_int = $dtype;
        })*

        fn dtype_name(dtype: c_int) -> String {
            match dtype {
                $($dtype => $name.into(),)*
                _ => format!("of number {dtype} in XLA"),
            }
        }

        /// The bytes of an element, 1 for other dtypes.
        fn bytes_of(dtype: c_int) -> usize {
            match dtype {
                $($dtype => size_of::<$kind>(),)*
                _ => 1,
            }
        }
    };
}
elements! {
    Pred, 1, "bool"; i8, 2, "int8"; i16, 3, "int16"; i32, 4, "int32"; i64, 5, "int64";
    u8, 6, "uint8"; u16, 7, "uint16"; u32, 8, "uint32"; u64, 9, "uint64"; F16, 10, "float16";
    f32, 11, "float32"; f64, 12, "float64"; Complex<f32>, 15, "complex64"; Bf16, 16, "bfloat16";
    Complex<f64>, 18, "complex128";
}

/// Elements of an operand, in row-major order. It dereferences to a slice.
pub struct Arg<'a, T> {
    data: &'a [T],
    /// The size of each axis.
    pub dims: &'a [i64],
}

/// Elements of a result, in row-major order, with arbitrary values before they are written.
pub struct Ret<'a, T> {
    data: &'a mut [T],
    /// The size of each axis.
    pub dims: &'a [i64],
}

impl<T> Deref for Arg<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        self.data
    }
}

impl<T> Deref for Ret<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        self.data
    }
}

impl<T> DerefMut for Ret<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.data
    }
}

/// Types of attributes: numbers, `bool`, `&str`, slices of numbers, and dictionaries ([`Attrs`]).
pub trait Attr<'a>: Sized {
    /// The value of an attribute of a kind, or a description of what it has instead.
    ///
    /// # Safety
    /// `value` points to an attribute of this kind of the C interface.
    unsafe fn read(kind: c_int, value: *const c_void) -> Result<Self, String>;
}

fn other_kind(kind: c_int) -> String {
    match kind {
        c::ATTR_ARRAY => "an array".into(),
        c::ATTR_DICTIONARY => "a dictionary".into(),
        c::ATTR_SCALAR => "a number".into(),
        c::ATTR_STRING => "a text".into(),
        _ => format!("of an unknown kind, {kind}"),
    }
}

macro_rules! attributes {
    ($($kind:ty),*) => { $(
        impl<'a> Attr<'a> for $kind {
            unsafe fn read(kind: c_int, value: *const c_void) -> Result<Self, String> {
                if kind != c::ATTR_SCALAR {
                    return Err(format!("it is {}", other_kind(kind)));
                }
                // SAFETY: scalars have this layout, and the dtype is compared before the value.
                let scalar = unsafe { &*(value as *const c::Scalar) };
                if scalar.dtype != <$kind as Element>::DTYPE {
                    return Err(format!("it is {}", dtype_name(scalar.dtype)));
                }
                Ok(unsafe { ptr::read_unaligned(scalar.value as *const $kind) })
            }
        }

        impl<'a> Attr<'a> for &'a [$kind] {
            unsafe fn read(kind: c_int, value: *const c_void) -> Result<Self, String> {
                if kind != c::ATTR_ARRAY {
                    return Err(format!("it is {}", other_kind(kind)));
                }
                // SAFETY: arrays have this layout, and the dtype is compared before the elements.
                let array = unsafe { &*(value as *const c::Array) };
                if array.dtype != <$kind as Element>::DTYPE {
                    return Err(format!("it is an array of {}", dtype_name(array.dtype)));
                }
                unsafe { elements_at(array.data, array.size) }
            }
        }
    )* };
}
attributes!(Pred, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);

impl<'a> Attr<'a> for bool {
    unsafe fn read(kind: c_int, value: *const c_void) -> Result<Self, String> {
        unsafe { Pred::read(kind, value) }.map(|byte| byte.0 != 0)
    }
}

impl<'a> Attr<'a> for &'a str {
    unsafe fn read(kind: c_int, value: *const c_void) -> Result<Self, String> {
        if kind != c::ATTR_STRING {
            return Err(format!("it is {}", other_kind(kind)));
        }
        // SAFETY: texts have this layout.
        let bytes = unsafe { &*(value as *const c::Bytes) };
        let bytes: &[u8] = unsafe { elements_at(bytes.data as *const c_void, bytes.size) }?;
        std::str::from_utf8(bytes).map_err(|_| "it is a text that is not UTF-8".into())
    }
}

impl<'a> Attr<'a> for Attrs<'a> {
    unsafe fn read(kind: c_int, value: *const c_void) -> Result<Self, String> {
        if kind != c::ATTR_DICTIONARY {
            return Err(format!("it is {}", other_kind(kind)));
        }
        // SAFETY: dictionaries have this layout.
        Ok(Attrs {
            frame: unsafe { &*(value as *const c::Attrs) },
        })
    }
}

/// A slice of `size` elements; memory of other alignment is an error.
unsafe fn elements_at<'a, T>(data: *const c_void, size: usize) -> Result<&'a [T], String> {
    if size == 0 {
        return Ok(&[]);
    }
    let data = data as *const T;
    if data.is_null() || !data.is_aligned() {
        return Err("its memory is not aligned to its elements".into());
    }
    // SAFETY: XLA owns `size` elements there until the handler returns.
    Ok(unsafe { slice::from_raw_parts(data, size) })
}

/// Named attributes: those of a call, or a dictionary.
#[derive(Clone, Copy)]
pub struct Attrs<'a> {
    frame: &'a c::Attrs,
}

impl<'a> Attrs<'a> {
    /// The names, sorted.
    pub fn names(&self) -> Vec<&'a str> {
        (0..self.len()).map(|i| self.name(i)).collect()
    }

    fn len(&self) -> usize {
        self.frame.size.max(0) as usize
    }

    fn name(&self, i: usize) -> &'a str {
        // SAFETY: there are `size` names.
        unsafe {
            let bytes = &**self.frame.names.add(i);
            std::str::from_utf8(slice::from_raw_parts(bytes.data, bytes.size)).unwrap_or("?")
        }
    }

    fn position(&self, name: &str) -> Option<usize> {
        (0..self.len()).find(|&i| self.name(i) == name)
    }

    /// The value of an attribute.
    pub fn get<T: Attr<'a>>(&self, name: &str) -> Result<T, Error> {
        let Some(i) = self.position(name) else {
            let message = format!("there is no attribute {name:?}, but {:?}", self.names());
            return Err(Error::invalid_argument(message));
        };
        // SAFETY: there are `size` kinds and values.
        unsafe { T::read(*self.frame.kinds.add(i), *self.frame.values.add(i)) }.map_err(|has| {
            let expected = std::any::type_name::<T>();
            let message = format!("the attribute {name:?} is read as {expected}, but {has}");
            Error::invalid_argument(message)
        })
    }
}

/// A call of a handler: operands, results and attributes.
pub struct Call<'a> {
    frame: &'a c::CallFrame,
    taken: Vec<Cell<bool>>,
}

impl<'a> Call<'a> {
    /// The number of operands.
    pub fn args(&self) -> usize {
        self.frame.args.size.max(0) as usize
    }

    /// The number of results.
    pub fn rets(&self) -> usize {
        self.frame.rets.size.max(0) as usize
    }

    /// The attributes.
    pub fn attrs(&self) -> Attrs<'a> {
        Attrs {
            frame: &self.frame.attrs,
        }
    }

    /// An attribute.
    pub fn attr<T: Attr<'a>>(&self, name: &str) -> Result<T, Error> {
        self.attrs().get(name)
    }

    /// An operand. It is an error if it has another dtype, or the memory of a result.
    pub fn arg<T: Element>(&self, i: usize) -> Result<Arg<'a, T>, Error> {
        let what = format!("operand {i}");
        let buffer = buffer(&self.frame.args, i, &what)?;
        if let Some(ret) = (0..self.rets()).find(|&ret| self.overlap(i, ret)) {
            return Err(Error::invalid_argument(format!(
                "operand {i} has the memory of result {ret}: use call.in_place({i}, {ret})"
            )));
        }
        let dims = dims(buffer);
        let size = checked_size::<T>(buffer, dims, &what)?;
        // SAFETY: the dtype was compared, and no result overlaps these elements.
        let data = unsafe { elements_at(buffer.data, size) };
        Ok(Arg {
            data: data.map_err(|e| Error::internal(format!("{what}: {e}")))?,
            dims,
        })
    }

    /// A result. It is an error if it has another dtype, or was taken before.
    pub fn ret<T: Element>(&self, i: usize) -> Result<Ret<'a, T>, Error> {
        if let Some(arg) = (0..self.args()).find(|&arg| self.overlap(arg, i)) {
            return Err(Error::invalid_argument(format!(
                "result {i} has the memory of operand {arg}: use call.in_place({arg}, {i})"
            )));
        }
        self.take(i)
    }

    /// A result with the contents of an operand of the same type. Nothing is copied if both have
    /// the same memory, which `input_output_aliases={arg: ret}` states.
    pub fn in_place<T: Element>(&self, arg: usize, ret: usize) -> Result<Ret<'a, T>, Error> {
        let what = format!("operand {arg}");
        let source = buffer(&self.frame.args, arg, &what)?;
        let size = checked_size::<T>(source, dims(source), &what)?;
        let others = (0..self.args()).filter(|&i| i != arg && self.overlap(i, ret));
        if others.count() > 0 {
            let message = format!("result {ret} has the memory of several operands");
            return Err(Error::invalid_argument(message));
        }
        let out = self.take::<T>(ret)?;
        if out.len() != size {
            return Err(Error::invalid_argument(format!(
                "{what} has {size} elements, and result {ret} has {}",
                out.len()
            )));
        }
        if size > 0 {
            // SAFETY: both have `size` elements of this type; `copy` allows equal addresses.
            unsafe { ptr::copy(source.data as *const T, out.data.as_mut_ptr(), size) };
        }
        Ok(out)
    }

    fn take<T: Element>(&self, i: usize) -> Result<Ret<'a, T>, Error> {
        let what = format!("result {i}");
        let buffer = buffer(&self.frame.rets, i, &what)?;
        if self.taken[i].replace(true) {
            return Err(Error::internal(format!("{what} is taken twice")));
        }
        let dims = dims(buffer);
        let size = checked_size::<T>(buffer, dims, &what)?;
        if size == 0 {
            return Ok(Ret {
                data: &mut [],
                dims,
            });
        }
        let data = buffer.data as *mut T;
        if data.is_null() || !data.is_aligned() {
            return Err(Error::internal(format!(
                "the memory of {what} is not aligned"
            )));
        }
        // SAFETY: the dtype was compared, each result is taken once, and results do not overlap.
        Ok(Ret {
            data: unsafe { slice::from_raw_parts_mut(data, size) },
            dims,
        })
    }

    /// Return true if an operand and a result have memory in common.
    fn overlap(&self, arg: usize, ret: usize) -> bool {
        let range = |buffers: &c::Buffers, i: usize| {
            // SAFETY: there are `size` buffers.
            let buffer = unsafe { &**buffers.values.add(i) };
            let size: i64 = dims(buffer).iter().product();
            let start = buffer.data as usize;
            start..start + size.max(0) as usize * bytes_of(buffer.dtype)
        };
        if arg >= self.args() || ret >= self.rets() {
            return false;
        }
        let (a, b) = (range(&self.frame.args, arg), range(&self.frame.rets, ret));
        a.start < b.end && b.start < a.end
    }
}

fn buffer<'a>(buffers: &'a c::Buffers, i: usize, what: &str) -> Result<&'a c::Buffer, Error> {
    if i >= buffers.size.max(0) as usize {
        return Err(Error::internal(format!(
            "there is no {what} among the {}",
            buffers.size
        )));
    }
    // SAFETY: there are `size` kinds and buffers.
    unsafe {
        if *buffers.kinds.add(i) != c::BUFFER {
            return Err(Error::invalid_argument(format!("{what} is not an array")));
        }
        Ok(&**buffers.values.add(i))
    }
}

fn dims(buffer: &c::Buffer) -> &[i64] {
    if buffer.rank <= 0 {
        return &[];
    }
    // SAFETY: there are `rank` sizes.
    unsafe { slice::from_raw_parts(buffer.dims, buffer.rank as usize) }
}

fn checked_size<T: Element>(buffer: &c::Buffer, dims: &[i64], what: &str) -> Result<usize, Error> {
    if buffer.dtype == T::DTYPE {
        return Ok(dims.iter().product::<i64>().max(0) as usize);
    }
    let (has, expected) = (dtype_name(buffer.dtype), dtype_name(T::DTYPE));
    let message = format!("{what} has the dtype {has}, but the handler takes {expected}");
    Err(Error::invalid_argument(message))
}

/// Numbers of operands and results, and names of attributes, that a handler takes.
pub struct Expected {
    pub args: usize,
    pub rets: usize,
    pub attrs: &'static [&'static str],
}

impl Expected {
    fn check(&self, call: &Call) -> Result<(), Error> {
        let attrs = call.attrs();
        for (what, takes, has) in [
            ("operands", self.args, call.args()),
            ("results", self.rets, call.rets()),
        ] {
            if takes != has {
                return Err(Error::invalid_argument(format!(
                    "the handler takes {takes} {what}, but the call has {has}"
                )));
            }
        }
        let all = self.attrs.iter().all(|name| attrs.position(name).is_some());
        if !all || attrs.len() != self.attrs.len() {
            let (takes, has) = (self.attrs, attrs.names());
            return Err(Error::invalid_argument(format!(
                "the handler takes the attributes {takes:?}, but the call has {has:?}"
            )));
        }
        Ok(())
    }
}

/// Answer a call: a question for the version, or the handler's result. For [`handler!`].
///
/// # Safety
/// `frame` is a call frame of XLA.
pub unsafe fn answer(
    frame: *mut c::CallFrame,
    name: &str,
    expected: &Expected,
    handler: fn(&Call) -> Result<(), Error>,
) -> *mut c::Failure {
    // SAFETY: the frame belongs to this call.
    let frame = unsafe { &*frame };
    let mut extension = frame.extension_start;
    while !extension.is_null() {
        // SAFETY: extensions form a list, and the kind tells their type.
        unsafe {
            if (*extension).kind == c::EXTENSION_METADATA {
                let metadata = &mut *(*(extension as *mut c::MetadataExtension)).metadata;
                (metadata.version.major, metadata.version.minor) = (c::MAJOR, c::MINOR);
                return ptr::null_mut();
            }
            extension = (*extension).next;
        }
    }
    let called = catch_unwind(AssertUnwindSafe(|| {
        if frame.struct_size < size_of::<c::CallFrame>() {
            return Err(Error::internal(
                "the call frame of this jaxlib is too short",
            ));
        }
        if frame.stage != c::EXECUTE {
            return Err(Error::internal("the handler is one of the stage execute"));
        }
        let taken = vec![Cell::new(false); frame.rets.size.max(0) as usize];
        let call = Call { frame, taken };
        expected.check(&call)?;
        handler(&call)
    }));
    let error = match called {
        Ok(Ok(())) => return ptr::null_mut(),
        Ok(Err(error)) => error,
        Err(payload) => {
            let error = Error::internal(format!("panic: {}", panic_message(&*payload)));
            std::mem::forget(payload); // its destructor may panic, too
            error
        }
    };
    let message = format!("{name}: {}", error.message).replace('\0', "?");
    let message = CString::new(message).unwrap_or_default();
    let mut create = c::ErrorCreate {
        struct_size: size_of::<c::ErrorCreate>(),
        extension_start: ptr::null_mut(),
        message: message.as_ptr(),
        code: if error.code == 0 { 13 } else { error.code },
    };
    // SAFETY: XLA copies the message.
    unsafe { ((*frame.api).error_create)(&mut create) }
}

fn panic_message(payload: &(dyn Any + Send)) -> &str {
    match (
        payload.downcast_ref::<&str>(),
        payload.downcast_ref::<String>(),
    ) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "without a text",
    }
}

/// Export a function as a handler of this name:
/// `handler!(acme_scale = scale, args: 1, rets: 1, attrs: ["by"]);`
macro_rules! handler {
    ($name:ident = $function:expr, args: $args:expr, rets: $rets:expr, attrs: [$($attr:expr),*]) => {
        #[allow(clippy::missing_safety_doc)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            frame: *mut $crate::primax_ffi::c::CallFrame,
        ) -> *mut $crate::primax_ffi::c::Failure {
            use $crate::primax_ffi::{answer, Expected};
            const EXPECTED: Expected = Expected { args: $args, rets: $rets, attrs: &[$($attr),*] };
            // SAFETY: XLA calls handlers with a call frame.
            unsafe { answer(frame, stringify!($name), &EXPECTED, $function) }
        }
    };
}
pub(crate) use handler;

//! Handlers of the tests in Rust; `primax_ffi.rs` is copied beside this file.

mod primax_ffi;

use primax_ffi::{c, handler, Attrs, Bf16, Call, Complex, Element, Error, Pred, F16};
use std::mem::offset_of;

/// `h[t] = a[t] h[t - 1] + x[t]` along the last axis.
fn recurrence(call: &Call) -> Result<(), Error> {
    let (a, x, mut h) = (
        call.arg::<f32>(0)?,
        call.arg::<f32>(1)?,
        call.ret::<f32>(0)?,
    );
    let Some(&n) = x.dims.last() else {
        return Err(Error::invalid_argument("x has no axis"));
    };
    if a.dims != x.dims {
        return Err(Error::invalid_argument("a and x have different shapes"));
    }
    let n = n.max(1) as usize;
    for ((a, x), h) in a.chunks(n).zip(x.chunks(n)).zip(h.chunks_mut(n)) {
        let mut state = 0.0;
        for ((a, x), h) in a.iter().zip(x).zip(h) {
            state = a * state + x;
            *h = state;
        }
    }
    Ok(())
}
handler!(acme_rust_recurrence = recurrence, args: 2, rets: 1, attrs: []);

fn copy<T: Element>(call: &Call) -> Result<(), Error> {
    let (x, mut y) = (call.arg::<T>(0)?, call.ret::<T>(0)?);
    y.copy_from_slice(&x);
    Ok(())
}

/// A copy of the elements as a type that an attribute names.
fn copy_as(call: &Call) -> Result<(), Error> {
    match call.attr::<&str>("dtype")? {
        "bool" => copy::<Pred>(call),
        "int8" => copy::<i8>(call),
        "int16" => copy::<i16>(call),
        "int32" => copy::<i32>(call),
        "int64" => copy::<i64>(call),
        "uint8" => copy::<u8>(call),
        "uint16" => copy::<u16>(call),
        "uint32" => copy::<u32>(call),
        "uint64" => copy::<u64>(call),
        "float16" => copy::<F16>(call),
        "bfloat16" => copy::<Bf16>(call),
        "float32" => copy::<f32>(call),
        "float64" => copy::<f64>(call),
        "complex64" => copy::<Complex<f32>>(call),
        "complex128" => copy::<Complex<f64>>(call),
        other => Err(Error::invalid_argument(format!("no dtype {other:?}"))),
    }
}
handler!(acme_rust_copy = copy_as, args: 1, rets: 1, attrs: ["dtype"]);

/// The attributes as numbers, and the sizes of texts and arrays.
fn attributes(call: &Call) -> Result<(), Error> {
    let inner: Attrs = call.attr("inner")?;
    let axes: &[i64] = call.attr("axes")?;
    let weights: &[f32] = call.attr("weights")?;
    let values = [
        f64::from(u8::from(call.attr::<bool>("flag")?)),
        call.attr::<i64>("i")? as f64,
        f64::from(call.attr::<u8>("narrow")?),
        f64::from(call.attr::<f32>("x")?),
        call.attr::<&str>("text")?.chars().count() as f64,
        axes.iter().sum::<i64>() as f64,
        weights.len() as f64,
        inner.get::<f64>("depth")?,
        inner.names().len() as f64,
    ];
    call.ret::<f64>(0)?.copy_from_slice(&values);
    Ok(())
}
handler!(
    acme_rust_attributes = attributes,
    args: 0,
    rets: 1,
    attrs: ["flag", "i", "narrow", "x", "text", "axes", "weights", "inner"]
);

fn increment(call: &Call) -> Result<(), Error> {
    for x in call.in_place::<f32>(0, 0)?.iter_mut() {
        *x += 1.0;
    }
    Ok(())
}
handler!(acme_rust_increment = increment, args: 1, rets: 1, attrs: []);

/// Ways to fail.
fn fail(call: &Call) -> Result<(), Error> {
    let x = call.arg::<f32>(0)?;
    match call.attr::<&str>("how")? {
        "error" => Err(Error::invalid_argument("the pivot is\0zero")),
        "unimplemented" => Err(Error {
            code: 12,
            message: "not for this shape".into(),
        }),
        "code 0" => Err(Error {
            code: 0,
            message: "no code".into(),
        }),
        "panic" => panic!("the pivot of column {} is zero", x.len()),
        "payload" => std::panic::panic_any(7),
        "index" => Err(Error::internal(format!("{}", x[x.len()]))),
        "operand" => call.arg::<f32>(1).map(|_| ()),
        "result" => call.ret::<f32>(1).map(|_| ()),
        "taken" => {
            let _first = call.ret::<f32>(0)?;
            call.ret::<f32>(0).map(|_| ())
        }
        "attribute" => call.attr::<i64>("who").map(|_| ()),
        "kind" => call.attr::<i64>("how").map(|_| ()),
        "none" => copy::<f32>(call),
        other => Err(Error::invalid_argument(format!("no way {other:?}"))),
    }
}
handler!(acme_rust_fail = fail, args: 1, rets: 1, attrs: ["how"]);

/// Sizes and offsets of the structures, as `handlers_layout.cc` has them.
#[unsafe(no_mangle)]
pub extern "C" fn acme_layout(out: *mut usize) -> usize {
    let values = [
        size_of::<c::Extension>(),
        offset_of!(c::Extension, kind),
        offset_of!(c::Extension, next),
        offset_of!(c::Version, major),
        offset_of!(c::Version, minor),
        offset_of!(c::Metadata, version),
        offset_of!(c::Metadata, traits),
        offset_of!(c::Metadata, state_type_id),
        offset_of!(c::MetadataExtension, metadata),
        size_of::<c::ErrorCreate>(),
        offset_of!(c::ErrorCreate, message),
        offset_of!(c::ErrorCreate, code),
        offset_of!(c::Api, version),
        offset_of!(c::Api, internal),
        offset_of!(c::Api, error_create),
        size_of::<c::Buffer>(),
        offset_of!(c::Buffer, dtype),
        offset_of!(c::Buffer, data),
        offset_of!(c::Buffer, rank),
        offset_of!(c::Buffer, dims),
        size_of::<c::Buffers>(),
        offset_of!(c::Buffers, size),
        offset_of!(c::Buffers, kinds),
        offset_of!(c::Buffers, values),
        offset_of!(c::Bytes, size),
        offset_of!(c::Scalar, value),
        offset_of!(c::Array, size),
        offset_of!(c::Array, data),
        size_of::<c::Attrs>(),
        offset_of!(c::Attrs, size),
        offset_of!(c::Attrs, kinds),
        offset_of!(c::Attrs, names),
        offset_of!(c::Attrs, values),
        offset_of!(c::CallFrame, api),
        offset_of!(c::CallFrame, context),
        offset_of!(c::CallFrame, stage),
        offset_of!(c::CallFrame, args),
        offset_of!(c::CallFrame, rets),
        offset_of!(c::CallFrame, attrs),
        size_of::<c::CallFrame>(),
        c::EXTENSION_METADATA as usize,
        c::EXECUTE as usize,
        c::BUFFER as usize,
        c::ATTR_ARRAY as usize,
        c::ATTR_DICTIONARY as usize,
        c::ATTR_SCALAR as usize,
        c::ATTR_STRING as usize,
        Pred::DTYPE as usize,
        i8::DTYPE as usize,
        i16::DTYPE as usize,
        i32::DTYPE as usize,
        i64::DTYPE as usize,
        u8::DTYPE as usize,
        u16::DTYPE as usize,
        u32::DTYPE as usize,
        u64::DTYPE as usize,
        F16::DTYPE as usize,
        Bf16::DTYPE as usize,
        f32::DTYPE as usize,
        f64::DTYPE as usize,
        Complex::<f32>::DTYPE as usize,
        Complex::<f64>::DTYPE as usize,
    ];
    // SAFETY: the test passes memory for 100 numbers.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), out, values.len()) };
    values.len()
}

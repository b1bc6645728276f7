// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

//! Makes a Wasm module ready for memory images.
//!
//! An image is the whole state of a booted guest only if nothing else can hold state. So the module is
//! scanned for instructions that change tables or drop segments, its mutable globals are exported for the
//! host to compare, and its active data segments, whose effect an image already holds, are taken out (with
//! the custom sections, which nobody reads: together a quarter of CPython's 99 MB).

use std::ffi::{c_char, CString};
use std::ops::Range;

use wasm_encoder::{ExportKind, ExportSection, RawSection};
use wasmparser::{
    ConstExpr, DataKind, ExternalKind, FunctionBody, Operator, Parser, Payload, TypeRef,
    Validator, WasmFeatures,
};

const GLOBAL_EXPORT_PREFIX: &str = "sw:global:";

mod section {
    pub const EXPORT: u8 = 7;
    pub const DATA: u8 = 11;
    pub const DATA_COUNT: u8 = 12;
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Facts {
    has_start: bool,
    writes_tables: bool,
    drops_segments: bool,
    passive_data: bool,
    imports_state: bool,
    mutable_globals: u32,
}

struct Segment {
    offset: u32,
    bytes: Vec<u8>,
}

pub struct Prepared {
    wasm: Vec<u8>,
    segments: Vec<Segment>,
    facts: Facts,
}

/// What one pass over the module collects before it is written again.
#[derive(Default)]
struct Scan {
    facts: Facts,
    /// Indices of mutable globals the module itself defines.
    mutable_globals: Vec<u32>,
    globals: u32,
    segments: Vec<Segment>,
    /// False when code names data segments, one is passive, or an offset is not a plain constant: then data
    /// stays in place.
    data_is_removable: bool,
    exports: Vec<(String, ExternalKind, u32)>,
    /// Every non-custom section: id and the range of its content.
    sections: Vec<(u8, Range<usize>)>,
}

fn scan_function(body: &FunctionBody, found: &mut Scan) -> wasmparser::Result<()> {
    let facts = &mut found.facts;
    for operator in body.get_operators_reader()? {
        match operator? {
            Operator::TableSet { .. }
            | Operator::TableGrow { .. }
            | Operator::TableFill { .. }
            | Operator::TableCopy { .. }
            | Operator::TableInit { .. } => facts.writes_tables = true,
            Operator::ElemDrop { .. } => facts.drops_segments = true,
            Operator::DataDrop { .. } => {
                facts.drops_segments = true;
                found.data_is_removable = false;
            }
            Operator::MemoryInit { .. } => found.data_is_removable = false,
            _ => {}
        }
    }
    Ok(())
}

fn constant_offset(expression: &ConstExpr) -> Option<u32> {
    let mut operators = expression.get_operators_reader();
    match (operators.read().ok()?, operators.read().ok()?) {
        (Operator::I32Const { value }, Operator::End) => Some(value as u32),
        _ => None,
    }
}

/// What a module may use. An image holds one memory of 32 bits, and whatever else holds state must be seen by `scan`.
/// A second memory, or the structs and arrays of the GC proposal, would keep for the next run what one run left there,
/// and count against no limit.
fn features() -> WasmFeatures {
    (WasmFeatures::default() | WasmFeatures::EXCEPTIONS)
        - WasmFeatures::GC
        - WasmFeatures::MULTI_MEMORY
        - WasmFeatures::MEMORY64
        - WasmFeatures::COMPONENT_MODEL
}

fn scan(wasm: &[u8]) -> wasmparser::Result<Scan> {
    // Validating first means that everything below may rely on the module being well formed.
    Validator::new_with_features(features()).validate_all(wasm)?;
    let mut found = Scan { data_is_removable: true, ..Scan::default() };
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload?;
        if let Some((id, range)) = payload.as_section() {
            if id != 0 {
                found.sections.push((id, range));
            }
        }
        match payload {
            Payload::ImportSection(reader) => {
                for import in reader.into_imports() {
                    match import?.ty {
                        TypeRef::Memory(_) | TypeRef::Table(_) => found.facts.imports_state = true,
                        TypeRef::Global(global) => {
                            found.globals += 1;
                            found.facts.imports_state |= global.mutable;
                        }
                        _ => {}
                    }
                }
            }
            Payload::GlobalSection(reader) => {
                for global in reader {
                    if global?.ty.mutable {
                        found.mutable_globals.push(found.globals);
                    }
                    found.globals += 1;
                }
            }
            Payload::ExportSection(reader) => {
                for export in reader {
                    let export = export?;
                    found.exports.push((export.name.to_string(), export.kind, export.index));
                }
            }
            Payload::StartSection { .. } => found.facts.has_start = true,
            Payload::DataSection(reader) => {
                for data in reader {
                    let data = data?;
                    match data.kind {
                        DataKind::Passive => {
                            found.facts.passive_data = true;
                            found.data_is_removable = false;
                        }
                        DataKind::Active { memory_index, offset_expr } => {
                            match (memory_index, constant_offset(&offset_expr)) {
                                (0, Some(offset)) => {
                                    found.segments.push(Segment { offset, bytes: data.data.to_vec() });
                                }
                                _ => found.data_is_removable = false,
                            }
                        }
                    }
                }
            }
            Payload::CodeSectionEntry(body) => scan_function(&body, &mut found)?,
            _ => {}
        }
    }
    found.facts.mutable_globals = found.mutable_globals.len() as u32;
    Ok(found)
}

fn export_kind(kind: ExternalKind) -> ExportKind {
    match kind {
        ExternalKind::Func | ExternalKind::FuncExact => ExportKind::Func,
        ExternalKind::Table => ExportKind::Table,
        ExternalKind::Memory => ExportKind::Memory,
        ExternalKind::Global => ExportKind::Global,
        ExternalKind::Tag => ExportKind::Tag,
    }
}

fn export_section(found: &Scan) -> ExportSection {
    let mut exports = ExportSection::new();
    for (name, kind, index) in &found.exports {
        exports.export(name, export_kind(*kind), *index);
    }
    for (number, index) in found.mutable_globals.iter().enumerate() {
        exports.export(&format!("{GLOBAL_EXPORT_PREFIX}{number}"), ExportKind::Global, *index);
    }
    exports
}

fn prepare(wasm: &[u8]) -> Result<Prepared, String> {
    let found = scan(wasm).map_err(|problem| problem.to_string())?;
    if let Some((name, ..)) = found.exports.iter().find(|(name, ..)| name.starts_with(GLOBAL_EXPORT_PREFIX)) {
        return Err(format!("it exports '{name}', and such names are ours"));
    }
    let mut module = wasm_encoder::Module::new();
    let mut exports_written = false;
    for (id, range) in &found.sections {
        // Sections come in a fixed order that is not that of their ids; what may stand before the export
        // section has an id below it, or is the tag section (13).
        let is_before_exports = *id < section::EXPORT || *id == 13;
        if !is_before_exports && !exports_written {
            module.section(&export_section(&found));
            exports_written = true;
        }
        match *id {
            section::EXPORT => {}
            section::DATA | section::DATA_COUNT if found.data_is_removable => {}
            id => {
                module.section(&RawSection { id, data: &wasm[range.clone()] });
            }
        }
    }
    if !exports_written {
        module.section(&export_section(&found));
    }
    Ok(Prepared {
        wasm: module.finish(),
        segments: if found.data_is_removable { found.segments } else { Vec::new() },
        facts: found.facts,
    })
}

/// # Safety
/// `wasm` points to `length` readable bytes; `error` is writable.
#[no_mangle]
pub unsafe extern "C" fn sw_prepare(wasm: *const u8, length: usize, error: *mut *mut c_char) -> *mut Prepared {
    let bytes = if length == 0 { &[][..] } else { std::slice::from_raw_parts(wasm, length) };
    // A panic must not cross into C++; wasmparser promises none, this is the seat belt.
    let message = match std::panic::catch_unwind(|| prepare(bytes)) {
        Ok(Ok(prepared)) => return Box::into_raw(Box::new(prepared)),
        Ok(Err(problem)) => problem,
        Err(_) => "internal error while reading the module".to_string(),
    };
    *error = CString::new(message.replace('\0', " ")).unwrap_or_default().into_raw();
    std::ptr::null_mut()
}

/// # Safety
/// `error` came from `sw_prepare`.
#[no_mangle]
pub unsafe extern "C" fn sw_prepare_free_error(error: *mut c_char) {
    drop(CString::from_raw(error));
}

#[no_mangle]
pub extern "C" fn sw_prepared_facts(prepared: &Prepared) -> Facts {
    prepared.facts
}

/// # Safety
/// `length` is writable.
#[no_mangle]
pub unsafe extern "C" fn sw_prepared_wasm(prepared: &Prepared, length: *mut usize) -> *const u8 {
    *length = prepared.wasm.len();
    prepared.wasm.as_ptr()
}

#[no_mangle]
pub extern "C" fn sw_prepared_segment_count(prepared: &Prepared) -> usize {
    prepared.segments.len()
}

/// # Safety
/// `index` is below the count; `offset` and `length` are writable.
#[no_mangle]
pub unsafe extern "C" fn sw_prepared_segment(
    prepared: &Prepared,
    index: usize,
    offset: *mut u32,
    length: *mut usize,
) -> *const u8 {
    let segment = &prepared.segments[index];
    *offset = segment.offset;
    *length = segment.bytes.len();
    segment.bytes.as_ptr()
}

/// # Safety
/// `prepared` came from `sw_prepare` and is not used again.
#[no_mangle]
pub unsafe extern "C" fn sw_prepared_delete(prepared: *mut Prepared) {
    drop(Box::from_raw(prepared));
}

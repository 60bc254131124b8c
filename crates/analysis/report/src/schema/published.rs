//! The JSON Schemas of what uturn prints, made from its types.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use uturn_snapshot::LbFile;

use super::{
    baseline, check, cure, explain, explain_classes, lab, lab_fuzz, migrate, probe, scan, trace,
    version, walk, whatif,
};

/// The name of each schema, and the schema.
pub fn published() -> Vec<(&'static str, Schema)> {
    vec![
        ("baseline", schema::<baseline::BaselineFile>()),
        ("check", schema::<check::Checks<'_>>()),
        ("cure", schema::<cure::Cures<'_>>()),
        ("explain", schema::<explain::Explained>()),
        ("explain-classes", schema::<explain_classes::Classes<'_>>()),
        ("lab-fuzz", schema::<lab_fuzz::Fuzz<'_>>()),
        ("lab-list", schema::<lab::List<'_>>()),
        ("lab-verify", schema::<lab::Lab<'_>>()),
        ("lb", schema::<LbFile>()),
        ("migrate", schema::<migrate::Migrate<'_>>()),
        ("migrate-list", schema::<migrate::Presets>()),
        ("probe", schema::<probe::Probe<'_>>()),
        ("scan", schema::<scan::Scan<'_>>()),
        ("trace", schema::<trace::Trace<'_>>()),
        ("version", schema::<version::Version<'_>>()),
        ("walk", schema::<walk::Walk<'_>>()),
        ("whatif", schema::<whatif::WhatIf<'_>>()),
    ]
}

fn schema<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

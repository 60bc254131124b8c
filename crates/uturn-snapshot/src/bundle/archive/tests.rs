use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

/// An archive of files, each with the bytes of its name.
fn archive(files: &[(&str, &[u8], tar::EntryType)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, bytes, kind) in files {
        let mut header = tar::Header::new_gnu();
        // Names that the library would not write.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append(&header, *bytes).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

fn unpacked(files: &[(&str, &[u8], tar::EntryType)], most: u64) -> Result<Vec<String>, String> {
    let files = unpack(Path::new("b.tgz"), &*archive(files), most);
    let names = |files: Files| without_top(files).into_keys().collect();
    files.map(names).map_err(|fault| fault.to_string())
}

const FILE: tar::EntryType = tar::EntryType::Regular;

#[test]
fn names_that_lead_out_are_refused() {
    for name in ["../a.yaml", "objects/../../a.yaml", "/etc/a.yaml", "objects\\..\\a.yaml"] {
        let fault = unpacked(&[(name, b"a", FILE)], 100).unwrap_err();
        assert!(fault.starts_with("b.tgz: ") && fault.contains("leads out"), "{fault}");
    }
    let fault = unpacked(&[("objects/a.yaml", b"", tar::EntryType::Symlink)], 100).unwrap_err();
    assert!(fault.contains("neither a file nor a folder"), "{fault}");
}

#[test]
fn the_sum_of_all_files_is_bounded() {
    let files = [("objects/a.yaml", &[b'a'; 60][..], FILE), ("objects/b.yaml", &[b'b'; 60], FILE)];
    assert_eq!(unpacked(&files, 120).unwrap().len(), 2);
    let fault = unpacked(&files, 119).unwrap_err();
    assert!(fault.contains("once unpacked"), "{fault}");
}

#[test]
fn a_folder_around_all_is_left_out() {
    let folder = tar::EntryType::Directory;
    let files = [("./mine/", &b""[..], folder), ("./mine/objects/a.yaml", b"a", FILE)];
    assert_eq!(unpacked(&files, 100), Ok(vec!["objects/a.yaml".to_owned()]));
    let files = [("objects/a.yaml", &b"a"[..], FILE), ("objects/b.yaml", b"b", FILE)];
    assert_eq!(unpacked(&files, 100).unwrap(), ["objects/a.yaml", "objects/b.yaml"]);
}

#[test]
fn what_is_cut_or_no_archive_is_a_fault() {
    let whole = archive(&[("objects/a.yaml", &[b'a'; 9000], FILE)]);
    for cut in [whole.len() / 2, whole.len() - 1, 1] {
        let files = unpack(Path::new("b.tgz"), &whole[..cut], 1 << 20).map(Files::into_keys);
        let fault = files.err().unwrap().to_string();
        assert!(fault.contains("cannot be read as an archive"), "{cut}: {fault}");
    }
    let mut plain = Vec::new();
    plain.write_all(b"apiVersion: v1\n").unwrap();
    assert!(unpack(Path::new("b.tgz"), &*plain, 1 << 20).is_err());
}

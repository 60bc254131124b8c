use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

/// Packs files, with these bytes as their names, into an archive.
fn archive(files: &[(&str, &[u8], EntryType)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, bytes, kind) in files {
        let mut header = tar::Header::new_gnu();
        // The library would not write some of these names.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append(&header, *bytes).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

fn unpacked(files: &[(&str, &[u8], EntryType)], most: u64) -> Result<Vec<String>, String> {
    let mut room = Room::of(UnpackLimit::of_bytes(most << 10));
    let files = unpack(Path::new("b.tgz"), &*archive(files), &mut room);
    let names = |files: Files| without_top(files).into_keys().collect();
    files.map(names).map_err(|fault| fault.to_string())
}

const FILE: EntryType = EntryType::Regular;

#[test]
fn names_that_lead_out_are_refused() {
    for name in ["../a.yaml", "objects/../../a.yaml", "/etc/a.yaml", "objects\\..\\a.yaml"] {
        let fault = unpacked(&[(name, b"a", FILE)], 100).unwrap_err();
        assert!(fault.starts_with("b.tgz: ") && fault.contains("leads out"), "{fault}");
    }
    let fault = unpacked(&[("objects/a.yaml", b"", EntryType::Symlink)], 100).unwrap_err();
    assert!(fault.contains("neither a file nor a folder"), "{fault}");
}

#[test]
fn all_that_is_unpacked_counts() {
    let long = vec![b'a'; 60 << 10];
    let files = [("objects/a.yaml", &*long, FILE), ("notes.txt", &long, FILE)];
    assert_eq!(unpacked(&files, 123).unwrap().len(), 2);
    // Files that are not kept, and the padding between files, count as well.
    let fault = unpacked(&files, 110).unwrap_err();
    assert_eq!(
        fault,
        "b.tgz: more than 0 MiB once unpacked, at \"notes.txt\"\n  if you trust it, state how much \
         may be read: --unpack-limit 1GiB"
    );
    let many: Vec<String> = (0..300).map(|at| format!("objects/{at}.yaml")).collect();
    let many: Vec<_> = many.iter().map(|name| (&**name, &b""[..], FILE)).collect();
    assert!(unpacked(&many, 100).unwrap_err().contains("once unpacked"));
}

/// Packs files after headers that no library would write.
fn packed(headers: &[(EntryType, &str, &[u8])]) -> Vec<u8> {
    archive(&headers.iter().map(|(kind, name, bytes)| (*name, *bytes, *kind)).collect::<Vec<_>>())
}

#[test]
fn what_is_packed_too_well_is_refused() {
    let zeros = vec![0; 40 << 20];
    let limit = UnpackLimit::default();
    let of = |bytes: &[u8], limit| {
        let files = unpack(Path::new("b.tgz"), bytes, &mut Room::of(limit));
        files.map(|files| files.len()).map_err(|fault| fault.to_string())
    };
    let packed_well = packed(&[(FILE, "objects/a.yaml", &zeros)]);
    let fault = of(&packed_well, limit).unwrap_err();
    assert!(fault.starts_with("b.tgz: more than 100 times as large"), "{fault}");
    assert!(fault.contains("\"objects/a.yaml\"") && fault.contains("--unpack-limit"), "{fault}");
    // A user who states a limit knows how large the archive is.
    assert_eq!(of(&packed_well, "64MiB".parse().unwrap()), Ok(1));
    // Zeros after the last file, in another gzip member, count as well.
    let mut twice = packed(&[(FILE, "objects/a.yaml", b"a")]);
    let mut more = GzEncoder::new(Vec::new(), Compression::fast());
    more.write_all(&zeros).unwrap();
    twice.extend(more.finish().unwrap());
    assert!(of(&twice, limit).unwrap_err().contains("100 times"));
}

#[test]
fn headers_and_names_are_bounded() {
    let long = "n".repeat(5000);
    let pax = |key: &str, value: &str| {
        let field = |digits: usize| digits + key.len() + value.len() + 3;
        let digits = (1..8).find(|digits| field(*digits).to_string().len() == *digits).unwrap();
        format!("{} {key}={value}\n", field(digits)).into_bytes()
    };
    let file = (FILE, "objects/a.yaml", &b"a"[..]);
    let extended = |kind, bytes: &[u8]| {
        let files =
            unpack(Path::new("b.tgz"), &*packed(&[(kind, "x", bytes), file]), &mut Room::default());
        files.map(|files| files.into_keys().collect::<Vec<_>>()).map_err(|fault| fault.to_string())
    };
    let (name, header) = (EntryType::GNULongName, EntryType::XHeader);
    assert_eq!(extended(name, b"objects/long.yaml\0"), Ok(vec!["objects/long.yaml".to_owned()]));
    assert_eq!(
        extended(header, &pax("path", "objects/p.yaml")),
        Ok(vec!["objects/p.yaml".to_owned()])
    );
    for (kind, bytes, expected) in [
        (name, long.clone().into_bytes(), "a header of 5000 bytes"),
        (name, vec![b'n'; 100 << 20], "a header of 104857600 bytes"),
        (header, vec![b'n'; 1 << 20], "a header of 1048576 bytes"),
        (header, pax("path", &long), "a name of more than 4096 bytes"),
        (header, pax("path", "../a.yaml"), "leads out"),
        (header, pax("size", "99999999999"), "8 GiB and more"),
        (header, pax("GNU.sparse.realsize", "99999999999"), "sparse"),
        (EntryType::GNUSparse, Vec::new(), "neither a file nor a folder"),
        (EntryType::Link, Vec::new(), "neither a file nor a folder"),
        (FILE, Vec::new(), "\"x\" is in it twice"),
    ] {
        let found = match kind {
            FILE => {
                let files = packed(&[(FILE, "x", b""), (FILE, "./x", b"")]);
                unpack(Path::new("b.tgz"), &*files, &mut Room::default())
                    .map(drop)
                    .map_err(|fault| fault.to_string())
            }
            _ => extended(kind, &bytes).map(drop),
        };
        let fault = found.unwrap_err();
        assert!(fault.starts_with("b.tgz: ") && fault.contains(expected), "{expected}: {fault}");
    }
}

#[test]
fn a_folder_around_all_is_left_out() {
    let folder = EntryType::Directory;
    let files = [("./mine/", &b""[..], folder), ("./mine/objects/a.yaml", b"a", FILE)];
    assert_eq!(unpacked(&files, 100), Ok(vec!["objects/a.yaml".to_owned()]));
    let files = [("objects/a.yaml", &b"a"[..], FILE), ("objects/b.yaml", b"b", FILE)];
    assert_eq!(unpacked(&files, 100).unwrap(), ["objects/a.yaml", "objects/b.yaml"]);
}

#[test]
fn what_is_cut_or_no_archive_is_a_fault() {
    let whole = archive(&[("objects/a.yaml", &[b'a'; 9000], FILE)]);
    for cut in [whole.len() / 2, whole.len() - 1, 1] {
        let files =
            unpack(Path::new("b.tgz"), &whole[..cut], &mut Room::default()).map(Files::into_keys);
        let fault = files.err().unwrap().to_string();
        assert!(fault.contains("cannot be read as an archive"), "{cut}: {fault}");
    }
    let mut plain = Vec::new();
    plain.write_all(b"apiVersion: v1\n").unwrap();
    assert!(unpack(Path::new("b.tgz"), &*plain, &mut Room::default()).is_err());
}

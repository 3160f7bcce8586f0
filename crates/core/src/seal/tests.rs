//! Sealing, the key file, and the forms of both that are stored for ever.

use super::*;
use jiff::Timestamp;
use proptest::prelude::*;

const PLACE: &str = "wsp_1/sources/token";

fn keyring(seed: u8) -> Keyring {
    Keyring::generate(std::array::from_fn(|i| seed.wrapping_add(i as u8)))
}

fn source(n: u8) -> SourceId {
    SourceId::new(Timestamp::UNIX_EPOCH, [n; 10])
}

/// A key ring that seals with the second and still opens what the first sealed.
fn rotated(new: &Keyring, old: &Keyring) -> Keyring {
    let text = [new, old].map(|keyring| keyring.to_text().expose().to_owned());
    let seal_line = |text: &str| {
        text.lines()
            .find(|l| l.starts_with("seal"))
            .map(str::to_owned)
    };
    let both = text[1].replacen(
        "seal",
        &format!("{}\nseal", seal_line(&text[0]).unwrap()),
        1,
    );
    Keyring::parse(&both).unwrap()
}

proptest! {
    #[test]
    fn what_is_sealed_opens_at_its_place(value: Vec<u8>, place in ".{0,20}", nonce: [u8; 24]) {
        let sealed = keyring(1).seal(&place, &value, nonce);
        prop_assert_eq!(keyring(1).open(&place, &sealed), Ok(value));
    }

    #[test]
    fn another_place_or_key_does_not_open(value: Vec<u8>, a in ".{0,5}", b in ".{0,5}", nonce: [u8; 24]) {
        prop_assume!(a != b);
        let sealed = keyring(1).seal(&a, &value, nonce);
        prop_assert_eq!(keyring(1).open(&b, &sealed), Err(SealError::Tampered));
        let mut same_id = keyring(1);
        same_id.sealing[0].key = Zeroizing::new([0; KEY_BYTES]);
        prop_assert_eq!(same_id.open(&a, &sealed), Err(SealError::Tampered));
    }

    #[test]
    fn garbage_does_not_open(garbage: Vec<u8>) {
        prop_assert!(keyring(1).open(PLACE, &garbage).is_err());
    }

    /// A key file that cannot be read is an error, never a panic, and never repeats what stands in it.
    #[test]
    fn garbage_is_no_key_file(garbage in "(emanet-keys 1\n)?((seal|dedup) [a-f0-9]{0,16} ?[A-Za-z0-9+/]{0,44}=?\n){0,3}") {
        if let Err(error) = Keyring::parse(&garbage) {
            let is_line = matches!(error, SealError::KeyFile { line: 1..=4, .. });
            prop_assert!(is_line, "{}", error);
        }
    }
}

/// A changed byte anywhere is noticed; in the key id it leads to a key that is not there.
#[test]
fn a_changed_byte_anywhere_is_noticed() {
    let sealed = keyring(1).seal(PLACE, b"token", [9; 24]);
    for at in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[at] ^= 1;
        match keyring(1).open(PLACE, &changed) {
            Err(SealError::UnknownKey(_)) => assert!((1..=8).contains(&at), "byte {at}"),
            opened => assert_eq!(opened, Err(SealError::Tampered), "byte {at}"),
        }
    }
    for length in 0..sealed.len() {
        let opened = keyring(1).open(PLACE, &sealed[..length]);
        assert_eq!(opened, Err(SealError::Tampered), "{length} bytes");
    }
    let longer = [sealed.as_slice(), b"x"].concat();
    assert_eq!(keyring(1).open(PLACE, &longer), Err(SealError::Tampered));
}

#[test]
fn a_key_that_is_not_there_is_named() {
    let sealed = keyring(1).seal(PLACE, b"token", [9; 24]);
    let opened = keyring(2).open(PLACE, &sealed);
    assert_eq!(
        opened,
        Err(SealError::UnknownKey("0102030405060708".into()))
    );
}

/// Design 9.9: keys can be changed; the first seals, all open.
#[test]
fn the_first_key_seals_and_all_open() {
    let (old, new) = (keyring(1), keyring(101));
    let both = rotated(&new, &old);
    let sealed_before = old.seal(PLACE, b"before", [9; 24]);
    let sealed_after = both.seal(PLACE, b"after", [9; 24]);
    assert_eq!(both.open(PLACE, &sealed_before), Ok(b"before".to_vec()));
    assert_eq!(new.open(PLACE, &sealed_after), Ok(b"after".to_vec()));
    assert!(old.open(PLACE, &sealed_after).is_err());
    // The dedup key does not change along with them.
    assert_eq!(both.ref_hash(source(1), "1"), old.ref_hash(source(1), "1"));
}

/// Stored for ever: form of the sealed value, of the key file, and of the hash that survives erasure.
#[test]
fn the_forms_never_change() {
    let keyring = keyring(1);
    let sealed = keyring.seal(PLACE, b"token", [9; 24]);
    assert_eq!(
        sealed[..33],
        [&[1, 1, 2, 3, 4, 5, 6, 7, 8][..], &[9; 24]].concat()
    );
    assert_eq!(BASE64.encode(&sealed[33..]), "i8fiJrCKYvKVQLHVHHJG2mDe3oX2");
    assert_eq!(
        BASE64.encode(keyring.ref_hash(source(1), "4711")),
        "gB5MFT4aGXLLAFTJWXrm/uFbhF+042pngBTJssjTiR0="
    );
    let text = keyring.to_text();
    let lines: Vec<_> = text
        .expose()
        .lines()
        .filter(|l| !l.starts_with('#'))
        .collect();
    assert_eq!(
        lines,
        [
            "emanet-keys 1",
            "seal 0102030405060708 CQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJyg=",
            "dedup KSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj9AQUJDREVGR0g=",
        ]
    );
}

#[test]
fn the_text_form_reads_back() {
    let read = Keyring::parse(keyring(1).to_text().expose()).unwrap();
    assert_eq!(read.to_text(), keyring(1).to_text());
    let windows = keyring(1).to_text().expose().replace('\n', "\r\n");
    assert!(Keyring::parse(&windows).is_ok());
}

/// An operator is told which line to look at, and nothing secret is repeated.
#[test]
fn a_broken_key_file_says_where() {
    let seal = "seal 0102030405060708 CQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJyg=";
    let dedup = "dedup KSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj9AQUJDREVGR0g=";
    let check = |text: String, expected: &str| {
        let error = Keyring::parse(&text).unwrap_err().to_string();
        assert_eq!(error, format!("line {expected}"), "{text}");
    };
    check(String::new(), "1 of the key file: expected `emanet-keys 1`");
    check(
        format!("{seal}\n{dedup}"),
        "1 of the key file: expected `emanet-keys 1`",
    );
    check(
        format!("emanet-keys 2\n{seal}\n{dedup}"),
        "1 of the key file: expected `emanet-keys 1`",
    );
    check(
        format!("{HEADER}\n{dedup}"),
        "2 of the key file: the file ends without a `seal` line",
    );
    check(
        format!("{HEADER}\n\n{seal}"),
        "3 of the key file: the file ends without a `dedup` line",
    );
    check(
        format!("{HEADER}\n{seal}\n{seal}\n{dedup}"),
        "3 of the key file: this key id stands there twice",
    );
    check(
        format!("{HEADER}\n{seal}\n{dedup}\n{dedup}"),
        "4 of the key file: there can be only one dedup key",
    );
    check(
        format!("{HEADER}\n{seal} x"),
        "2 of the key file: expected `seal <id> <key>` or `dedup <key>`",
    );
    check(
        format!("{HEADER}\nseal +102030405060708 AA=="),
        "2 of the key file: the key id is not 16 hexadecimal digits",
    );
    check(
        format!("{HEADER}\nseal 0102030405060708 AA=="),
        "2 of the key file: the key is not 32 bytes in base64",
    );
    check(
        format!("{HEADER}\n{seal}\ndedup secret!"),
        "3 of the key file: the key is not 32 bytes in base64",
    );
}

#[test]
fn hashes_differ_by_source_reference_and_installation() {
    let hash = keyring(1).ref_hash(source(1), "1");
    assert_ne!(hash, keyring(1).ref_hash(source(2), "1"));
    assert_ne!(hash, keyring(1).ref_hash(source(1), "2"));
    assert_ne!(hash, keyring(2).ref_hash(source(1), "1"));
    assert_eq!(hash, keyring(1).ref_hash(source(1), "1"));
}

#[test]
fn debug_shows_nothing() {
    assert_eq!(format!("{:?}", keyring(1)), "Keyring");
}

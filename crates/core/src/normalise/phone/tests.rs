//! The table of phone-and-name.md 2, row by row, and what its rules forbid.

use super::*;
use proptest::prelude::*;

const IREM: &str = "+905321234567";

/// E.164 of every number in a field.
fn numbers(raw: &str, region: &str) -> Vec<Option<String>> {
    let reading = read(raw, region);
    assert!(reading.phones.iter().all(|p| p.raw == raw), "raw is kept");
    reading.phones.into_iter().map(|p| p.e164).collect()
}

#[track_caller]
fn check(raw: &str, wanted: &[&str]) {
    let wanted: Vec<_> = wanted.iter().map(|e| Some((*e).to_owned())).collect();
    assert_eq!(numbers(raw, "TR"), wanted, "{raw:?}");
}

#[track_caller]
fn check_unreadable(raw: &str) {
    assert_eq!(numbers(raw, "TR"), [None], "{raw:?}");
    assert!(read(raw, "TR").notes.contains(&"unreadable"), "{raw:?}");
}

#[track_caller]
fn check_notes(raw: &str, wanted: &[&str]) {
    assert_eq!(read(raw, "TR").notes, wanted, "{raw:?}");
}

#[test]
fn usual_spellings_are_one_number() {
    for raw in [
        "05321234567",
        "0532 123 45 67",
        "(0532) 123-45-67",
        "0532.123.45.67",
        "0532/123 45 67",
        "5321234567",
        "905321234567",
        "+90 532 123 45 67",
        "00905321234567",
        "0090 532 1234567",
        "p:+905321234567",
        "tel:+90-532-123-45-67",
        "Cep: 0532 123 45 67",
        "0532 123 45 67 (Ayşe)",
    ] {
        check(raw, &[IREM]);
        check_notes(raw, &[]);
    }
}

#[test]
fn a_trunk_zero_behind_the_country_code_is_dropped() {
    for raw in [
        "+90 (0532) 123 45 67",
        "+9005321234567",
        "90 0532 123 45 67",
        "009005321234567",
    ] {
        check(raw, &[IREM]);
    }
    check("+05321234567", &[IREM]);
    check_notes("+05321234567", &["repaired"]);
    check_unreadable("+90005321234567");
}

#[test]
fn digits_of_other_scripts_and_invisible_characters_are_read() {
    for raw in [
        "٠٥٣٢١٢٣٤٥٦٧",
        "۰۵۳۲۱۲۳۴۵۶۷",
        "０５３２１２３４５６７",
        "\u{202a}+90 532 123 45 67\u{202c}",
        "0532\u{200b}123\u{a0}45\u{2060}67\u{feff}",
        "0532\u{2011}123\u{2013}45\u{2212}67",
    ] {
        check(raw, &[IREM]);
    }
}

#[test]
fn several_numbers_in_one_field_are_parted() {
    for raw in [
        "05321234567 / 05551112233",
        "0532 123 45 67-0555 111 22 33",
        "0532-123-45-67-0555-111-22-33",
        "+90-532-123-45-67-0555-111-22-33",
        "0532 123 45 67 veya 0555 111 22 33",
        "0532 123 45 67 VEYA 0555 111 22 33",
        "0532 123 45 67 ve 0555 111 22 33",
        "0532 123 45 67 , 0555 111 22 33",
        "0532 123 45 67;0555 111 22 33",
        "0532 123 45 67|0555 111 22 33",
        "0532 123 45 67 & 0555 111 22 33",
        "0532 123 45 67\n0555 111 22 33",
        "05321234567 05551112233",
    ] {
        check(raw, &[IREM, "+905551112233"]);
        check_notes(raw, &["several"]);
    }
    check("yok / 0532 123 45 67", &[IREM]);
    check("444 12 34 / 0532 123 45 67", &["+904441234", IREM]);
    check("0532 123 45 / 0532 123 45 67", &[IREM]);
}

#[test]
fn extensions_are_taken_apart() {
    for (raw, extension) in [
        ("0212 345 67 89 dahili 12", "12"),
        ("0212 345 67 89 DAHİLİ: 12", "12"),
        ("0212 345 67 89 Dahili:12", "12"),
        ("0212 345 67 89, dahili 12", "12"),
        ("0212 345 67 89 (dahili 1234)", "1234"),
        ("0212 345 67 89 (12)", "12"),
        ("+90 212 345 67 89 ext. 12", "12"),
        ("02123456789x12", "12"),
    ] {
        let reading = read(raw, "TR");
        assert_eq!(reading.phones.len(), 1, "{raw}");
        assert_eq!(
            reading.phones[0].e164.as_deref(),
            Some("+902123456789"),
            "{raw}"
        );
        assert_eq!(
            reading.phones[0].extension.as_deref(),
            Some(extension),
            "{raw}"
        );
        assert_eq!(reading.phones[0].kind, PhoneKind::Fixed);
    }
}

#[test]
fn wrong_lengths_are_neither_padded_nor_cut() {
    for raw in [
        "532123456",
        "53212345678",
        "053212345678",
        "0532123456",
        "9053212345678",
        "015112345678",
        "12125551234",
        "05321234567 saat 18",
        "0532 123 45 67 +90",
        "arayın",
        "<test lead: dummy data for phone_number>",
    ] {
        check_unreadable(raw);
    }
    check_unreadable(&"5".repeat(64 * 1024));
    check(&format!("05321234567{}", " ".repeat(1000)), &[IREM]);
    check_unreadable(&format!("05321234567{}1", " ".repeat(1000)));
}

#[test]
fn made_up_numbers_are_flagged() {
    check("0555 555 55 55", &["+905555555555"]);
    check_notes("0555 555 55 55", &["suspicious"]);
    check("0532 000 00 00", &["+905320000000"]);
    check_notes("0532 000 00 00", &["suspicious"]);
    assert!(read("0500 000 00 00", "TR").notes.contains(&"suspicious"));
    check_notes("1234567890", &["suspicious", "unreadable"]);
    check_notes("+90 111 111 11 11", &["suspicious", "unreadable"]);
    check_notes("0532 100 20 00", &[]);
}

#[test]
fn kinds_of_line() {
    for (raw, e164, kind) in [
        ("4441234", "+904441234", PhoneKind::Company),
        ("444 1 234", "+904441234", PhoneKind::Company),
        ("+90 444 1 234", "+904441234", PhoneKind::Company),
        ("0212 345 67 89", "+902123456789", PhoneKind::Fixed),
        ("0532 123 45 67", IREM, PhoneKind::Mobile),
        ("0850 222 11 33", "+908502221133", PhoneKind::Other),
        ("+4915112345678", "+4915112345678", PhoneKind::Mobile),
        ("+994501234567", "+994501234567", PhoneKind::Mobile),
        ("00994 50 123 45 67", "+994501234567", PhoneKind::Mobile),
        ("+1 212 555 2368", "+12125552368", PhoneKind::Unknown),
    ] {
        let phone = read(raw, "TR").phones.remove(0);
        assert_eq!(phone.e164.as_deref(), Some(e164), "{raw}");
        assert_eq!(phone.kind, kind, "{raw}");
        assert!(phone.valid, "{raw}");
    }
}

/// "Not valid by library" is a flag, not a refusal: the library doubts ranges that exist.
#[test]
fn what_the_plan_does_not_know_is_tried() {
    let phone = read("0599 123 45 67", "TR").phones.remove(0);
    assert_eq!(phone.e164.as_deref(), Some("+905991234567"));
    assert_eq!(phone.kind, PhoneKind::Mobile);
    assert!(!phone.valid);
    check_notes("0599 123 45 67", &["not_valid"]);
}

#[test]
fn spreadsheet_damage_is_undone_only_without_loss() {
    for raw in [
        "5.321234567E+9",
        "5,321234567E+09",
        "9.05321234567E+11",
        "5321234567.0",
    ] {
        check(raw, &[IREM]);
        check_notes(raw, &["repaired"]);
    }
    for raw in [
        "9.05321E+11",
        "5.3212346E+9",
        "5E+9",
        "5.321234567E+99999999999999999999",
    ] {
        check_unreadable(raw);
    }
}

#[test]
fn letters_that_look_like_digits_are_read_between_digits_only() {
    for raw in [
        "+90O5321234567",
        "0532 l23 45 67",
        "0532 I23 45 67",
        "O532 123 45 67",
    ] {
        check(raw, &[IREM]);
    }
    check_notes("+90O5321234567", &["repaired"]);
    check_unreadable("0532 ile 123 45 67");
    check_unreadable("0532a1234567");
}

#[test]
fn no_number_is_missing() {
    for raw in ["", "+", "-", "yok", "YOK", ".", "0", " ", "null"] {
        let reading = read(raw, "TR");
        assert!(reading.phones.is_empty(), "{raw}");
        assert_eq!(reading.notes, ["missing"], "{raw}");
    }
}

/// H16: a national number belongs to the source's country or to none; it is never matched against country codes.
#[test]
fn national_numbers_are_never_taken_for_international_ones() {
    assert_eq!(numbers("0685123456", "FR"), [Some("+33685123456".into())]);
    for nowhere in ["", "??", "ZZ", "TUR", "001"] {
        assert_eq!(numbers("0685123456", nowhere), [None], "{nowhere}");
        assert_eq!(numbers("685123456", nowhere), [None], "{nowhere}");
    }
    assert_eq!(numbers("0685123456", "TR"), [None]);
    assert_eq!(numbers("+33685123456", ""), [Some("+33685123456".into())]);
    assert_eq!(
        numbers("0151 12345678", "DE"),
        [Some("+4915112345678".into())]
    );
    assert_eq!(numbers("06 1234 5678", "IT").len(), 1);
    assert_eq!(
        numbers("02 1234 5678", "IT"),
        [Some("+390212345678".into())]
    );
    assert_eq!(numbers("+90 0532 123 45 67", "DE"), [Some(IREM.into())]);
}

fn phone_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[+0]{0,3}(90|49|1|39|33|7|44|994)?[0-9 ().-]{5,16}",
        "[0-9oOlI+/,;&|x# dahilve\u{200b}٠-٩-]{0,40}",
        "(0|90|\\+90)?5[0-9]{9}",
        "[0-9],[0-9]{9}E\\+[0-9]{1,2}",
    ]
}

proptest! {
    #[test]
    fn any_text_is_read_without_panic_and_kept(raw in phone_text(), region in "(TR|DE|IT|US|FR|AR|BR|MX|)") {
        for phone in read(&raw, &region).phones {
            prop_assert_eq!(&phone.raw, &raw);
            let Some(e164) = phone.e164 else { continue };
            prop_assert!(e164.len() <= 16 && e164.starts_with('+'), "{}", e164);
            prop_assert!(e164[1..].bytes().all(|b| b.is_ascii_digit()));
            // Normalising what was normalised changes nothing, wherever it is read.
            for region in [region.as_str(), "TR", ""] {
                prop_assert_eq!(numbers(&e164, region), [Some(e164.clone())]);
            }
        }
    }

    #[test]
    fn every_turkish_mobile_number_is_read(national in "5[0-9]{9}", prefix in "(|0|90|\\+90|0090|\\+90 0)") {
        let wanted = Some(format!("+90{national}"));
        prop_assert_eq!(numbers(&format!("{prefix}{national}"), "TR"), [wanted]);
    }
}

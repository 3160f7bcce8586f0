use super::*;
use proptest::prelude::*;

#[track_caller]
fn check(raw: &str, address: Option<&str>, suggestion: Option<&str>, notes: &[&str]) {
    let reading = read(raw);
    let email = reading.email.expect(raw);
    assert_eq!(email.raw, raw);
    assert_eq!(email.address.as_deref(), address, "{raw}");
    assert_eq!(email.suggestion.as_deref(), suggestion, "{raw}");
    assert_eq!(reading.notes, notes, "{raw}");
}

#[test]
fn addresses_are_cleaned() {
    for raw in [
        "ece.er@example.com",
        " ece.er@example.com\n",
        "ece.er@EXAMPLE.com",
        "\u{200b}ece.er@example.com\u{202c}",
        "ece.er @ example . com",
        "mailto:ece.er@example.com",
        "www.ece.er@example.com",
        "ece.er@example.com.",
        "ece.er@example.com,",
        "Ece Er <ece.er@example.com>",
        "e-posta: ece.er@example.com",
        "ｅｃｅ.er＠example.com",
    ] {
        check(raw, Some("ece.er@example.com"), None, &[]);
    }
    check(
        "Ece+form@example.com.tr",
        Some("Ece+form@example.com.tr"),
        None,
        &[],
    );
    check("ece@örnek.com.tr", Some("ece@örnek.com.tr"), None, &[]);
    check("ece@почта.рф", Some("ece@почта.рф"), None, &[]);
}

/// H3: letters without Turkish case, no stray combining dot, nobody merged with somebody else.
#[test]
fn letter_case_of_addresses_is_not_turkish() {
    check("INFO@EXAMPLE.COM", Some("INFO@example.com"), None, &[]);
    check(
        "İREM@EXAMPLE.COM",
        Some("iREM@example.com"),
        None,
        &["repaired"],
    );
    check("alı@gmail.com", Some("ali@gmail.com"), None, &["repaired"]);
    check("ece@GMAİL.COM", Some("ece@gmail.com"), None, &["repaired"]);
    check(
        "ışık@example.com",
        None,
        Some("isik@example.com"),
        &["not_valid"],
    );
    assert_eq!(matching_key("ISIK@example.com"), "isik@example.com");
    assert_eq!(matching_key("iREM@example.com"), "irem@example.com");
    assert_ne!(
        matching_key("ışık@example.com"),
        matching_key("ISIK@example.com")
    );
    assert_ne!(
        matching_key("ece.er@gmail.com"),
        matching_key("eceer@gmail.com")
    );
}

#[test]
fn slips_are_suggested_not_rewritten() {
    check(
        "ece@gmail.con",
        Some("ece@gmail.con"),
        Some("ece@gmail.com"),
        &["suspicious"],
    );
    check(
        "ece@gmial.com",
        Some("ece@gmial.com"),
        Some("ece@gmail.com"),
        &["suspicious"],
    );
    check(
        "ece@gmail.com.tr",
        Some("ece@gmail.com.tr"),
        Some("ece@gmail.com"),
        &["suspicious"],
    );
    check(
        "ece@hotmail.co",
        Some("ece@hotmail.co"),
        Some("ece@hotmail.com"),
        &["suspicious"],
    );
    check(
        "ece@outlok.com",
        Some("ece@outlok.com"),
        Some("ece@outlook.com"),
        &["suspicious"],
    );
    check("ece@ymail.com", Some("ece@ymail.com"), None, &[]);
    check("ece@gmail", None, Some("ece@gmail.com"), &["not_valid"]);
    check(
        "ece@@gmail.com",
        None,
        Some("ece@gmail.com"),
        &["not_valid"],
    );
    check(
        "ece.er.gmail.com",
        None,
        Some("ece.er@gmail.com"),
        &["not_valid"],
    );
    check(
        "ece..er@gmail.com",
        None,
        Some("ece.er@gmail.com"),
        &["not_valid"],
    );
    check(
        "çağrı@gmail.com",
        None,
        Some("cagri@gmail.com"),
        &["not_valid"],
    );
    check("еce@gmail.com", None, Some("ece@gmail.com"), &["not_valid"]);
    check("ece@gmаil.com", None, Some("ece@gmail.com"), &["not_valid"]);
}

#[test]
fn the_first_of_several_counts() {
    for raw in [
        "ece@example.com, er@example.com",
        "ece@example.com er@example.com",
        "ece@example.com / er@example.com",
        "ece@example.com;er@example.com",
    ] {
        check(raw, Some("ece@example.com"), None, &["several"]);
    }
}

#[test]
fn what_is_no_address_is_kept_as_raw() {
    for raw in [
        "ece",
        "ece@",
        "@example.com",
        "a@b@c.com",
        "ece@example",
        "ece@1.2",
        "ece@-x.com",
        "0532 123 45 67",
    ] {
        check(raw, None, None, &["not_valid"]);
    }
    check(&"x".repeat(64 * 1024), None, None, &["not_valid"]);
    check(
        &format!("{}@example.com", "x".repeat(65)),
        None,
        None,
        &["not_valid"],
    );
    for raw in ["", "-", "yok", "null"] {
        assert_eq!(
            read(raw),
            Reading {
                email: None,
                notes: vec!["missing"]
            }
        );
    }
}

proptest! {
    #[test]
    fn any_text_is_read_and_what_was_read_stays(raw in "(\\PC|[@.<>, \u{0}ıİа]|gmail|\\.con){0,40}") {
        let Some(email) = read(&raw).email else { return Ok(()) };
        for text in [email.address, email.suggestion].into_iter().flatten() {
            prop_assert!(is_well_formed(&text), "{}", text);
            prop_assert!(!text.contains(['\u{307}', 'İ', 'ı', ' ', '\0']), "{:?}", text);
            let again = read(&text).email.and_then(|e| e.address);
            prop_assert_eq!(again, Some(text));
        }
    }
}

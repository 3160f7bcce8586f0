use super::*;
use crate::lead::{Completeness, LeadField, Required};
use proptest::prelude::*;

fn raw(fields: &[(&str, &str)]) -> RawLead {
    RawLead {
        fields: fields
            .iter()
            .map(|(key, value)| ((*key).to_owned(), vec![(*value).to_owned()]))
            .collect(),
        ..RawLead::default()
    }
}

fn read(fields: &[(&str, &str)]) -> Lead {
    lead(&raw(fields), &Options::default())
}

/// `field:code`, with `!` where the field is unusable.
fn problems(lead: &Lead) -> Vec<String> {
    let show = |p: &Problem| {
        format!(
            "{}:{}{}",
            p.field,
            p.code,
            if p.unusable { "!" } else { "" }
        )
    };
    lead.problems.iter().map(show).collect()
}

#[test]
fn a_form_becomes_a_lead() {
    let lead = read(&[
        ("Adınız Soyadınız", " İrem  Şahin "),
        ("Telefon Numaranız", "0532 123 45 67"),
        ("E-Posta", "irem@EXAMPLE.com"),
        ("İl", "İstanbul"),
        ("ilçe", "Kadıköy"),
        ("Mesajınız", "Satır 1\nSatır 2"),
        ("konu", "Fiyat"),
        ("Daire Tipi", "2+1"),
        ("KVKK", "on"),
        ("sms_izni", "0"),
        ("utm_source", "fb"),
        ("gclid", ""),
    ]);
    assert_eq!(lead.full_name.as_deref(), Some("İrem Şahin"));
    assert_eq!(lead.first_name.as_deref(), Some("İrem"));
    assert_eq!(lead.last_name.as_deref(), Some("Şahin"));
    assert_eq!(
        lead.phone.as_ref().and_then(|p| p.e164.as_deref()),
        Some("+905321234567")
    );
    let email = lead.email.as_ref().and_then(|e| e.address.as_deref());
    assert_eq!(email, Some("irem@example.com"));
    assert_eq!(lead.city.as_deref(), Some("İstanbul"));
    assert_eq!(lead.message.as_deref(), Some("Satır 1\nSatır 2"));
    let answers = [
        ("ilçe", "Kadıköy"),
        ("konu", "Fiyat"),
        ("Daire Tipi", "2+1"),
    ]
    .map(|(key, value)| (key.to_owned(), vec![value.to_owned()]));
    assert_eq!(lead.answers, answers);
    assert_eq!(
        lead.consent,
        [("KVKK".into(), true), ("sms_izni".into(), false)]
    );
    assert_eq!(
        lead.attribution,
        BTreeMap::from([("utm_source".into(), "fb".into())])
    );
    assert_eq!(problems(&lead), [""; 0]);
    assert_eq!(Required::default().check(&lead), Completeness::Complete);
}

#[test]
fn names_are_joined_or_split_as_the_form_gives_them() {
    for (fields, wanted) in [
        (
            &[("ad", "Ayşe"), ("soyad", "Yılmaz")][..],
            ["Ayşe Yılmaz", "Ayşe", "Yılmaz"],
        ),
        (&[("ad", "Ayşe Yılmaz")], ["Ayşe Yılmaz", "Ayşe", "Yılmaz"]),
        (
            &[("full_name", "Ayşe Y."), ("first_name", "Ayşe Nur")],
            ["Ayşe Y.", "Ayşe Nur", ""],
        ),
        (
            &[("soyad", "Yılmaz"), ("ad", "-")],
            ["Yılmaz", "", "Yılmaz"],
        ),
        (&[("isim", "Ã‡aÄŸrÄ± Er")], ["Çağrı Er", "Çağrı", "Er"]),
        (&[("isim", "yok")], ["", "", ""]),
        (&[("isim", "\u{200b}")], ["", "", ""]),
        (&[("isim", "05321234567")], ["05321234567", "", ""]),
    ] {
        let lead = read(fields);
        let names = [&lead.full_name, &lead.first_name, &lead.last_name];
        assert_eq!(names.map(|n| n.as_deref().unwrap_or_default()), wanted);
    }
    assert_eq!(
        problems(&read(&[("isim", "Ã‡aÄŸrÄ± Er")])),
        ["full_name:repaired"]
    );
    assert_eq!(
        problems(&read(&[("isim", "05321234567")])),
        ["full_name:suspicious"]
    );
}

/// DL-4: a lead whose phone cannot be read but whose e-mail is valid is still worth money.
#[test]
fn a_partial_lead_keeps_what_it_has() {
    let lead = read(&[("telefon", "532123456"), ("email", "ece@example.com")]);
    assert_eq!(
        lead.phone.as_ref().map(|p| p.raw.as_str()),
        Some("532123456")
    );
    assert_eq!(problems(&lead), ["phone:unreadable!"]);
    let missing = Completeness::Partial(vec![LeadField::Phone]);
    assert_eq!(Required::default().check(&lead), missing);

    let lead = read(&[("telefon", "yok"), ("email", "ece")]);
    assert_eq!(lead.phone, None);
    assert_eq!(problems(&lead), ["phone:missing!", "email:not_valid!"]);
    let policy = Required::default();
    assert!(matches!(policy.check(&lead), Completeness::Unusable(_)));
}

#[test]
fn fields_that_were_there_but_empty_are_told() {
    let lead = read(&[
        ("ad soyad", "-"),
        ("telefon", ""),
        ("email", "."),
        ("şehir", "yok"),
        ("mesaj", " "),
    ]);
    assert_eq!(
        problems(&lead),
        [
            "full_name:missing!",
            "phone:missing!",
            "email:missing!",
            "city:missing!",
            "message:missing!"
        ]
    );
    assert_eq!(
        lead,
        Lead {
            problems: lead.problems.clone(),
            ..Lead::default()
        }
    );
    assert_eq!(read(&[]), Lead::default());
}

#[test]
fn several_phone_fields_make_further_numbers() {
    let numbers = |lead: &Lead| {
        let all = lead.phone.iter().chain(&lead.other_phones);
        all.map(|p| p.e164.clone().unwrap_or_default())
            .collect::<Vec<_>>()
    };
    let lead = read(&[
        ("telefon", "arayın"),
        ("cep", "0532 123 45 67"),
        ("whatsapp", "05321234567"),
        ("gsm", ""),
    ]);
    assert_eq!(numbers(&lead), ["+905321234567", ""]);
    assert_eq!(problems(&lead), ["phone:several"]);
    let lead = read(&[
        ("telefon", "0532 123 45 67 / 0212 345 67 89"),
        ("tel-2", "0555 111 22 33"),
    ]);
    assert_eq!(
        numbers(&lead),
        ["+905321234567", "+902123456789", "+905551112233"]
    );
}

#[test]
fn the_first_address_wins_and_the_other_is_not_lost() {
    let lead = read(&[
        ("mail", "yazın"),
        ("email", "ece@example.com"),
        ("work_email", "er@example.com"),
    ]);
    let email = lead.email.expect("there is one");
    assert_eq!(email.address.as_deref(), Some("ece@example.com"));
    let keys: Vec<_> = lead.answers.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["mail", "work_email"]);
}

/// H25: a true NUL goes, the text that looks like one stays.
#[test]
fn nul_is_removed_by_code_point_and_flagged() {
    let lead = read(&[
        ("isim", "Ece\0 Er"),
        ("soru", r"\u0000 and \\u0000"),
        ("a\0b", "x"),
        ("telefon", "0532\x00123 45 67"),
    ]);
    assert_eq!(lead.full_name.as_deref(), Some("Ece Er"));
    let answers = [("soru", r"\u0000 and \\u0000"), ("ab", "x")]
        .map(|(k, v)| (k.to_owned(), vec![v.to_owned()]));
    assert_eq!(lead.answers, answers);
    assert_eq!(
        problems(&lead),
        ["isim:repaired", "ab:repaired", "telefon:repaired"]
    );
}

#[test]
fn test_leads_are_recognised_by_their_dummy_texts() {
    for value in [
        "<test lead: dummy data for phone_number>",
        "<Test lead: dummy data for x>",
        "test@meta.com",
        "TEST@fb.com",
    ] {
        assert!(read(&[("soru", value)]).is_test, "{value}");
    }
    for value in [
        "test",
        "test@example.com",
        "bu bir <test lead: dummy data for x>",
    ] {
        assert!(!read(&[("soru", value)]).is_test, "{value}");
    }
    let stated = RawLead {
        is_test: true,
        ..RawLead::default()
    };
    assert!(lead(&stated, &Options::default()).is_test);
}

#[test]
fn consent_that_cannot_be_read_is_not_given() {
    let boxes = RawLead {
        fields: vec![
            ("kvkk".into(), vec!["0".into(), "1".into()]),
            ("acik_riza".into(), vec!["belki".into()]),
            ("onay".into(), vec![]),
        ],
        consent: vec![("optional_1".into(), true)],
        ..RawLead::default()
    };
    let lead = lead(&boxes, &Options::default());
    let wanted =
        [("optional_1", true), ("kvkk", true), ("onay", false)].map(|(k, t)| (k.to_owned(), t));
    assert_eq!(lead.consent, wanted);
    assert_eq!(
        lead.answers,
        [("acik_riza".to_owned(), vec!["belki".to_owned()])]
    );
    assert_eq!(problems(&lead), ["acik_riza:unreadable!"]);
}

#[test]
fn what_the_platform_states_goes_before_what_a_field_says() {
    let stated = RawLead {
        attribution: BTreeMap::from([("form_id".into(), "44".into())]),
        problems: vec![Problem::note("body", "charset_fallback")],
        created_at: "2026-01-02T03:04:05Z".parse().ok(),
        ..raw(&[("form_id", "other"), ("UTM Medium", "cpc")])
    };
    let lead = lead(&stated, &Options::default());
    assert_eq!(lead.attribution["form_id"], "44");
    assert_eq!(lead.attribution["utm_medium"], "cpc");
    assert_eq!(
        lead.answers,
        [("form_id".to_owned(), vec!["other".to_owned()])]
    );
    assert_eq!(problems(&lead), ["body:charset_fallback"]);
    assert_eq!(lead.created_at, stated.created_at);
}

#[test]
fn long_values_are_kept_whole() {
    let long = "ş".repeat(64 * 1024);
    let keys = [
        "isim",
        "telefon",
        "email",
        "şehir",
        "mesaj",
        "soru",
        "kvkk",
        "utm_source",
    ];
    let lead = read(&keys.map(|key| (key, long.as_str())));
    assert_eq!(lead.full_name.as_deref(), Some(long.as_str()));
    assert_eq!(lead.phone.map(|p| p.raw), Some(long.clone()));
    assert_eq!(lead.email.map(|e| e.raw), Some(long.clone()));
    assert_eq!(lead.message, Some(long.clone()));
    assert_eq!(lead.answers.len(), 2);
}

fn any_key() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "(ad|isim|soyad|full_name|telefon|cep|email|mail|il|ilce|mesaj|konu|kvkk|utm_source|no|tel-1)",
    ]
}

fn any_value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[+0-9 ]{0,15}",
        "[a-zı@.]{0,12}",
        "(-|yok|0|1|on|\\.|)"
    ]
}

proptest! {
    /// Never a panic, and every letter a person gave is somewhere in the lead.
    #[test]
    fn nothing_that_was_said_is_lost(
        fields in proptest::collection::vec((any_key(), proptest::collection::vec(any_value(), 0..3)), 0..8),
        region in "(TR|DE||\\?)",
    ) {
        let raw = RawLead { fields, ..RawLead::default() };
        let options = Options { region, ..Options::default() };
        let lead = lead(&raw, &options);
        prop_assert_eq!(&lead, &super::lead(&raw, &options));
        let shown = serde_json::to_string(&lead).expect("serialises");
        prop_assert!(!shown.contains("\\u0000"));
        for value in raw.fields.iter().flat_map(|(_, values)| values) {
            if value.len() > 3 && value.bytes().all(|b| b.is_ascii_digit()) {
                prop_assert!(shown.contains(value.as_str()), "{} is not in {}", value, shown);
            }
        }
    }
}

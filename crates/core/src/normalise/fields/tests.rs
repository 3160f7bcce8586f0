use super::*;

#[track_caller]
fn check_value(key: &str, value: &str, wanted: Meaning) {
    let fields = sort(vec![(key.into(), vec![value.into()])], &Options::default());
    assert_eq!(fields[0].meaning, wanted, "{key}");
}

#[track_caller]
fn check(keys: &[&str], wanted: Meaning) {
    for key in keys {
        check_value(key, "x", wanted);
    }
}

#[test]
fn synonyms_are_known_in_every_spelling() {
    check(
        &[
            "Ad Soyad",
            "AD_SOYAD",
            "adsoyad",
            "Adınız ve Soyadınız*",
            "adı_soyadı",
            "FULL_NAME",
            "fullName",
        ],
        FullName,
    );
    check(
        &[
            "İsim Soyisim",
            "your-name",
            "Müşteri Adı",
            "Yetkili",
            "names",
        ],
        FullName,
    );
    check(
        &["first_name", "FIRST_NAME", "givenName", "fname"],
        FirstName,
    );
    check(&["Soyadınız", "SOYADI", "last-name", "lname"], LastName);
    check(
        &[
            "TELEFON",
            "Telefon Numaranız?",
            "telefon_numarası",
            "tel-123",
            "PHONE_NUMBER",
            "Cep No:",
            "GSM",
        ],
        Phone,
    );
    check(
        &[
            "İletişim",
            "İRTİBAT NO",
            "size ulaşabileceğimiz telefon",
            "phone_2",
            "WORK_PHONE",
            "msisdn",
        ],
        Phone,
    );
    check(&["form_fields[phone]", "phoneNumber", "whatsapp"], Phone);
    check(
        &[
            "E-Posta",
            "eposta",
            "E-POSTA ADRESİ",
            "email",
            "your-email",
            "email-2",
            "WORK_EMAIL",
            "Mail",
        ],
        Email,
    );
    check(&["İl", "ŞEHİR", "Yaşadığınız Şehir", "CITY"], City);
    check(&["ilçe", "Semt", "POSTAL_CODE"], District);
    check(&["Mesajınız", "your-message"], Message);
    check(&["Açıklama", "subject", "Not"], Topic);
    check(
        &[
            "KVKK",
            "acceptance-123",
            "Açık Rıza",
            "optional_1",
            "SMS İzni",
            "eposta_izni",
        ],
        Consent,
    );
    check(
        &[
            "utm_source",
            "UTM Campaign",
            "gclid",
            "fbclid",
            "Referrer",
            "Nereden duydunuz?",
        ],
        Attribution,
    );
    check(
        &[
            "daire tipi",
            "Bütçe",
            "aranmak_istediginiz_saat",
            "utm",
            "",
            "?",
            "12",
            "text-123",
            "name-2",
        ],
        Answer,
    );
}

#[test]
fn traps_are_not_names_or_numbers() {
    check(
        &["ad_id", "ad_name", "form[id]", "form_name", "form[name]"],
        Attribution,
    );
    check(
        &[
            "no",
            "telefonla mı arayalım",
            "tarih",
            "adres",
            "state_of_mind",
        ],
        Answer,
    );
    check_value("no", "no", Answer);
    check_value("no", "0532 123 45 67", Phone);
    check_value("no", "12", Answer);
    check_value("Sipariş No", "5321234567", Answer);
    check_value("Telefon ile mi arayalım?", "evet", Answer);
    check_value("Telefon numaranız nedir?", "0532 123 45 67", Phone);
    check_value("Size hangi mail ile yazalım?", "ece@example.com", Email);
    check_value("iletisim", "ece@example.com", Email);
    check_value("KVKK metnini okudum", "on", Consent);
    check_value("KVKK hakkında sorunuz", "nedir bu", Answer);
}

#[test]
fn what_ad_and_isim_mean_depends_on_the_form() {
    let meanings = |keys: &[&str]| {
        let fields = keys.iter().map(|key| ((*key).into(), vec!["x".into()]));
        let sorted = sort(fields.collect(), &Options::default());
        sorted.iter().map(|f| f.meaning).collect::<Vec<_>>()
    };
    assert_eq!(meanings(&["ad"]), [FullName]);
    assert_eq!(meanings(&["isim"]), [FullName]);
    assert_eq!(meanings(&["ad", "soyad"]), [FirstName, LastName]);
    assert_eq!(meanings(&["İsim", "Soyisim"]), [FirstName, LastName]);
    assert_eq!(meanings(&["name", "surname"]), [FirstName, LastName]);
    assert_eq!(meanings(&["ad", "full_name"]), [Answer, FullName]);
    assert_eq!(
        meanings(&["ad", "ad_id", "name"]),
        [Answer, Attribution, FullName]
    );
}

#[test]
fn the_sources_own_table_goes_first() {
    let own = [
        ("field_7", "phone"),
        ("Telefon", "answer"),
        ("İl", "ignore"),
        ("x", "nonsense"),
    ];
    let options = Options {
        fields: own.map(|(k, v)| (k.into(), v.into())).into(),
        ..Options::default()
    };
    for (key, wanted) in [
        ("field_7", Phone),
        ("FIELD-7", Phone),
        ("Telefon", Answer),
        ("il", Meaning::Ignored),
        ("x", Answer),
        ("E-posta", Email),
    ] {
        let fields = sort(vec![(key.into(), vec![])], &options);
        assert_eq!(fields[0].meaning, wanted, "{key}");
    }
}

#[test]
fn synonyms_are_written_as_they_are_compared_and_only_once() {
    let mut seen = HashMap::new();
    for (meaning, names) in SYNONYMS {
        for name in names.split(' ') {
            assert_eq!(fold(name), name);
            let before = seen.insert(squeeze(name), *meaning);
            assert!(before.is_none(), "{name} stands twice");
        }
    }
}

#[test]
fn consent_is_never_guessed() {
    for value in [
        "1",
        "on",
        "Evet",
        "EVET",
        "Okudum, kabul ediyorum.",
        "İzin veriyorum",
    ] {
        assert_eq!(is_ticked(value), Some(true), "{value}");
    }
    for value in ["", "0", "Hayır", "HAYIR", "false", "Kabul etmiyorum"] {
        assert_eq!(is_ticked(value), Some(false), "{value}");
    }
    for value in ["belki", "2", "kabul ediyorum ama aramayın"] {
        assert_eq!(is_ticked(value), None, "{value}");
    }
}

//! The rows of API-3 this crate answers with. Stands in for the table in `emanet_core::error_code` until that is there.

use super::trace::Language;
use axum::http::StatusCode;

/// A row: code, status, message and hint in both languages.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) code: &'static str,
    pub(super) status: u16,
    en: [&'static str; 2],
    tr: [&'static str; 2],
}

impl Code {
    pub(super) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).expect("the table holds valid statuses")
    }

    pub(super) fn message_and_hint(&self, language: Language) -> [&'static str; 2] {
        match language {
            Language::En => self.en,
            Language::Tr => self.tr,
        }
    }
}

macro_rules! rows {
    ($($name:ident $code:literal $status:literal en $en:expr, tr $tr:expr;)*) => {
        $(pub(super) static $name: Code = Code { code: $code, status: $status, en: $en, tr: $tr };)*
        #[cfg(test)]
        pub(super) static ALL: &[&Code] = &[$(&$name),*];
    };
}

rows! {
    INTERNAL "CORE-SYS-0001" 500
        en ["Something unexpected went wrong here.", "Try again; if it happens again, report it with the trace id."],
        tr ["Burada beklenmeyen bir hata oluştu.", "Yeniden deneyin; tekrarlanırsa izleme numarasıyla bildirin."];
    UNAVAILABLE "CORE-SYS-0002" 503
        en ["A part of the service is away for the moment.", "Send the same request again after the time in Retry-After."],
        tr ["Hizmetin bir bölümü şu anda kullanılamıyor.", "Aynı isteği Retry-After süresinden sonra yeniden gönderin."];
    TIMEOUT "CORE-SYS-0003" 504
        en ["It took too long.", "Send the same request again."],
        tr ["İşlem çok uzun sürdü.", "Aynı isteği yeniden gönderin."];
    NO_SUCH_ENDPOINT "CORE-SYS-0004" 501
        en ["There is no such endpoint.", "Compare the address with /openapi.json."],
        tr ["Böyle bir uç nokta yok.", "Adresi /openapi.json ile karşılaştırın."];
    MALFORMED "CORE-REQ-0001" 400
        en ["The request cannot be read.", "See the details."],
        tr ["İstek okunamadı.", "Ayrıntılara bakın."];
    INVALID "CORE-REQ-0002" 422
        en ["Some values are not valid.", "See the details."],
        tr ["Bazı değerler geçerli değil.", "Ayrıntılara bakın."];
    NOT_FOUND "CORE-REQ-0003" 404
        en ["There is no such thing here.", "Check the address and the workspace."],
        tr ["Burada böyle bir kayıt yok.", "Adresi ve çalışma alanını kontrol edin."];
    CONFLICT "CORE-REQ-0004" 409
        en ["The present state does not allow it.", "Load the current state and decide again."],
        tr ["Şu anki durum buna izin vermiyor.", "Güncel durumu yükleyip yeniden karar verin."];
    TOO_LARGE "CORE-REQ-0006" 413
        en ["The body is larger than allowed.", "Send less at once."],
        tr ["Gövde izin verilenden büyük.", "Tek seferde daha az gönderin."];
    METHOD "CORE-REQ-0007" 405
        en ["The method is not allowed here.", "See the Allow header."],
        tr ["Bu yöntem burada kullanılamaz.", "Allow başlığına bakın."];
    MEDIA_TYPE "CORE-REQ-0008" 415
        en ["The body's type or encoding is not supported.", "Send it uncompressed, in a supported content type."],
        tr ["Gövdenin türü veya kodlaması desteklenmiyor.", "Sıkıştırmadan, desteklenen bir içerik türüyle gönderin."];
    UNAUTHENTICATED "CORE-AUTH-0001" 401
        en ["The identity is missing or not valid.", "Check the key or the signing secret on both sides."],
        tr ["Kimlik eksik veya geçersiz.", "Anahtarı ya da imza parolasını iki tarafta da kontrol edin."];
    FORBIDDEN "CORE-AUTH-0002" 403
        en ["This identity may not do that.", "Ask an administrator for the permission."],
        tr ["Bu kimliğin buna yetkisi yok.", "Yöneticiden yetki isteyin."];
}

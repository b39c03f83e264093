@_spi(_Unicode) import Swift

/// The composed form of texts, in which strings that compare equal in Swift have equal bytes.
///
/// Source: UAX #15, Normalization Form C.
package enum UnicodeForm {
    /// Whether a text is in the composed form.
    package static func isComposed(_ text: String) -> Bool {
        if text.utf8.allSatisfy({ $0 < 0x80 }) { return true }
        return text.unicodeScalars.elementsEqual(text._nfc)
    }

    package static func composed(_ text: String) -> String {
        if text.utf8.allSatisfy({ $0 < 0x80 }) { return text }
        return String(String.UnicodeScalarView(text._nfc))
    }
}

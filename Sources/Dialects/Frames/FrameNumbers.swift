import JSONText

/// Counts out of JSON: file sizes, widths and the like.
enum FrameNumber {
    /// A whole number above 0: written as one, as a decimal whose fraction is cut off, or as digits in quotes. Nil for
    /// everything else, and for what does not fit.
    static func count(_ field: JSONField?) -> Int64? {
        guard let field else { return nil }
        let value: Int64?
        switch field.kind {
        case .integer: value = field.int64
        case .decimal:
            guard let double = field.double, double >= 1, double < 0x1p63 else { return nil }
            value = Int64(double)
        case .string: value = field.withUTF8(digits) ?? nil
        case .object, .array, .true, .false, .null: value = nil
        }
        guard let value, value > 0 else { return nil }
        return value
    }

    private static func digits(_ bytes: UnsafeRawBufferPointer) -> Int64? {
        guard !bytes.isEmpty else { return nil }
        var value: Int64 = 0
        for byte in bytes {
            let digit = byte &- UInt8(ascii: "0")
            guard digit < 10 else { return nil }
            let (scaled, over) = value.multipliedReportingOverflow(by: 10)
            let (sum, past) = scaled.addingReportingOverflow(Int64(digit))
            if over || past { return nil }
            value = sum
        }
        return value
    }
}

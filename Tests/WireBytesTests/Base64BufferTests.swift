import BridgeTestSupport
import JSONText
import Testing
import WireBytes

@Suite("Base64 from buffer to buffer")
struct Base64BufferTests {
    private func decode(_ text: String, room: Int? = nil) -> [UInt8]? {
        let digits = Array(text.utf8)
        var out = [UInt8](repeating: 0xAA, count: room ?? Base64.decodedCapacity(digits.count))
        let count = digits.withUnsafeBytes { from in
            out.withUnsafeMutableBytes { to in Base64.decodeTolerant(from, into: to) }
        }
        return count.map { Array(out.prefix($0)) }
    }

    private func encode(_ bytes: [UInt8], room: Int? = nil) -> String? {
        var out = [UInt8](repeating: 0xAA, count: room ?? Base64.encodedCount(bytes.count))
        let count = bytes.withUnsafeBytes { from in
            out.withUnsafeMutableBytes { to in Base64.encode(from, into: to) }
        }
        return count.map { String(decoding: out.prefix($0), as: UTF8.self) }
    }

    @Test("the vectors of RFC 4648 hold in both directions", arguments: Base64Tests.vectors)
    func rfcVectors(plain: String, encoded: String) {
        #expect(encode(Array(plain.utf8)) == encoded)
        #expect(decode(encoded) == Array(plain.utf8))
    }

    @Test(
        "padding, alphabet and unused bits are the writer's choice",
        arguments: [
            ("Zg", "f"), ("Zg=", "f"), ("Zg===", "f"), ("Zm8", "fo"), ("Zh==", "f"), ("Zm9=", "fo"), ("====", ""),
            ("Pz8-Pj8_", "??>>?\u{3F}"), ("Pz8+Pj8/", "??>>?\u{3F}"), ("Pz8-Pj8/", "??>>?\u{3F}"),
        ])
    func tolerated(_ text: String, _ plain: String) { #expect(decode(text) == Array(plain.utf8)) }

    @Test(
        "anything else is refused",
        arguments: [
            "Z", "Zm9vZ", "Zm9v\n", " Zm9v", "Zm 9v", "Z=9v", "Zg==Zg==", "=Zg", "Zm9é", "Zm9.", "Zm9v\0", "\u{7F}AAA",
        ])
    func refused(_ text: String) { #expect(decode(text) == nil) }

    @Test("no byte but a digit is taken, wherever it stands")
    func everyByte() {
        let digits = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_".utf8)
        for byte in UInt8.min...UInt8.max {
            for place in 0..<7 where byte != UInt8(ascii: "=") {
                var text = Array("AAAAAAA".utf8)
                text[place] = byte
                var out = [UInt8](repeating: 0, count: Base64.decodedCapacity(7))
                let count = text.withUnsafeBytes { from in
                    out.withUnsafeMutableBytes { to in Base64.decodeTolerant(from, into: to) }
                }
                #expect(count == (digits.contains(byte) ? 5 : nil), "byte \(byte) at \(place)")
            }
        }
    }

    @Test("too little room is refused")
    func room() {
        #expect(encode([1, 2, 3, 4], room: 7) == nil)
        #expect(encode([1, 2, 3, 4], room: 9) == "AQIDBA==")
        #expect(decode("AQIDBA==", room: 3) == nil)
        #expect(decode("AQIDBA==", room: 20) == [1, 2, 3, 4])
    }

    @Test("both sides agree with the strict ones", arguments: [UInt64(7), 8])
    func roundTrip(seed: UInt64) {
        var rng = SeededGenerator(seed: seed)
        for length in 0..<200 {
            let bytes = rng.bytes(length)
            #expect(encode(bytes) == Base64.encode(bytes), "\(rng)")
            #expect(decode(Base64.encode(bytes)) == bytes, "\(rng)")
            #expect(decode(Base64.encodeURLSafe(bytes)) == bytes, "\(rng)")
        }
    }

    @Test(
        "the bytes of a string are those of its text",
        arguments: [#""""#, #""plain""#, #""a\/b\n\"\\""#, #""\ud83e\udd80\u00e9\u0000""#, #""é🦀""#])
    func fieldBytes(_ json: String) throws {
        try Array(json.utf8).withUnsafeBytes { bytes in
            var reader = try JSONReader(bytes)
            let field = try reader.readValue()
            #expect(field.withUTF8 { Array($0) } == field.string.map { Array($0.utf8) })
        }
    }

    @Test("only a string has text", arguments: ["1", "null", "[]", #"{"a":1}"#, "true"])
    func noBytes(_ json: String) throws {
        try Array(json.utf8).withUnsafeBytes { bytes in
            var reader = try JSONReader(bytes)
            #expect(try reader.readValue().withUTF8 { $0.count } == nil)
        }
    }
}

@Suite("Reading containers inside containers")
struct NestedReadingTests {
    @Test("a reader can step into containers of containers, empty ones too")
    func nested() throws {
        try Array(#"{"a":[{},{"x":[]},7,{"x":1}],"b":{},"c":2}"#.utf8).withUnsafeBytes { bytes in
            var seen: [String] = []
            var reader = try JSONReader(bytes)
            #expect(try reader.enterObject())
            while let key = try reader.nextKey() {
                seen.append(key.rawText)
                if try reader.enterArray() {
                    while try reader.hasNextElement() {
                        guard try reader.enterObject() else {
                            seen.append(try reader.readValue().rawText)
                            continue
                        }
                        seen.append("{")
                        while let key = try reader.nextKey() {
                            seen.append(key.rawText)
                            seen.append(try reader.readValue().rawText)
                        }
                    }
                } else {
                    seen.append(try reader.readValue().rawText)
                }
            }
            try reader.finish()
            #expect(seen == ["a", "{", "{", "x", "[]", "7", "{", "x", "1", "b", "{}", "c", "2"])
        }
    }

    @Test(
        "a comma too many or too few is an error at any level", arguments: ["[{},]", "[{}{}]", "[[]1]", "[,{}]", "[{}"])
    func commas(_ json: String) throws {
        #expect(throws: JSONError.self) {
            try Array(json.utf8).withUnsafeBytes { bytes in
                var reader = try JSONReader(bytes)
                _ = try reader.enterArray()
                while try reader.hasNextElement() {
                    if try reader.enterObject() {
                        while let _ = try reader.nextKey() { _ = try reader.readValue() }
                    } else if try reader.enterArray() {
                        while try reader.hasNextElement() { _ = try reader.readValue() }
                    } else {
                        _ = try reader.readValue()
                    }
                }
                try reader.finish()
            }
        }
    }
}

import Digests
import HTTPProtocol
import IRCProtocol
import WireBytes

// Forms of single fields, and checks of their texts.

extension ConfigurationForm where Value == UpstreamURL? {
    /// Placeholders are filled in after all of a room is known; see ``ConfigurationLoader``.
    static var upstreamURL: Self {
        var form = text("a URL such as \"ws://127.0.0.1:8080/chat\"") { text throws(AddressError) in
            .some(try UpstreamURL(parsing: text))
        } print: {
            $0?.description
        }
        form.write = { url in url.map { .hiding($0, as: $0.description) } }
        return form
    }
}

extension ConfigurationForm {
    /// The contents of a file, by its path, or of a systemd credential, by its name. Not printed: the plain key is.
    static func contents(
        ofCredential: Bool = false,
        accept:
            @escaping @Sendable (
                _ text: String, _ path: String, ConfigurationNode, inout Value, inout ConfigurationReader
            ) -> Void
    ) -> Self {
        Self(expected: ofCredential ? "the name of a credential" : "a path", shape: .leaf) { node, value, reader in
            guard let written = reader.string(node), !written.isEmpty,
                let path = ofCredential ? reader.credentialPath(written, origin: node.origin) : written,
                let text = reader.contents(ofFile: path, origin: node.origin)
            else { return }
            accept(text, path, node, &value, &reader)
        } write: { _ in
            nil
        }
    }

    /// A text that is never printed.
    static func hidden<Wrapped: Hashable & Sendable>(
        accept: @escaping @Sendable (String, ConfigurationNode, inout Value, inout ConfigurationReader) -> Void
    ) -> Self where Value == Wrapped? {
        Self(expected: "a string", shape: .leaf) { node, value, reader in
            if let text = reader.string(node) { accept(text, node, &value, &reader) }
        } write: {
            $0.map { .hiding($0) }
        }
    }
}

extension ConfigurationForm where Value == String {
    static var fileContents: Self { contents { text, _, _, value, _ in value = text } }
}

extension ConfigurationForm where Value == UInt32? {
    /// Permission bits in octal, such as "0660".
    static var permissions: Self {
        text("permissions in octal, such as \"0660\"") { (text: String) throws(AddressError) -> UInt32?? in
            guard (3...4).contains(text.utf8.count), let bits = UInt32(text, radix: 8), bits <= 0o777 else {
                return nil
            }
            return .some(bits)
        } print: { bits in
            guard let bits else { return nil }
            let digits = String(bits, radix: 8)
            return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
        }
    }
}

extension ConfigurationForm where Value == PasswordVerifier? {
    static var password: Self { hidden(accept: accept) }
    static var passwordFile: Self { contents(accept: acceptContents) }
    static var passwordCredential: Self { contents(ofCredential: true, accept: acceptContents) }

    @Sendable private static func acceptContents(
        _ text: String, _ path: String, _ node: ConfigurationNode, _ value: inout PasswordVerifier?,
        _ reader: inout ConfigurationReader
    ) {
        guard !text.isEmpty else { return reader.report(node.origin, "\"\(path)\" is empty") }
        accept(text, node, &value, &reader)
    }

    @Sendable private static func accept(
        _ text: String, _ node: ConfigurationNode, _ value: inout PasswordVerifier?, _ reader: inout ConfigurationReader
    ) {
        if text.isEmpty {
            value = nil
        } else if text.hasPrefix("$scram-") {
            do throws(SCRAMVerifier.ParseError) {
                value = .hashed(try SCRAMVerifier(parsing: text))
            } catch {
                reader.report(node.origin, error.message)
            }
        } else if text.utf8.contains(where: { $0 == 0 || $0 == 0x0A || $0 == 0x0D }) {
            reader.report(node.origin, "a password is one line: IRC cannot carry line breaks")
        } else {
            value = .plain(Secret(text))
        }
    }
}

extension ConfigurationForm where Value == SCRAMVerifier? {
    static var passwordHash: Self { hidden(accept: accept) }

    static var passwordHashFile: Self { contents(accept: acceptContents) }
    static var passwordHashCredential: Self { contents(ofCredential: true, accept: acceptContents) }

    @Sendable private static func acceptContents(
        _ text: String, _ path: String, _ node: ConfigurationNode, _ value: inout SCRAMVerifier?,
        _ reader: inout ConfigurationReader
    ) {
        accept(text, node, &value, &reader)
    }

    @Sendable private static func accept(
        _ text: String, _ node: ConfigurationNode, _ value: inout SCRAMVerifier?, _ reader: inout ConfigurationReader
    ) {
        do throws(SCRAMVerifier.ParseError) {
            value = try SCRAMVerifier(parsing: text)
        } catch {
            reader.report(node.origin, error.message + "; \"chatbridge hash-password\" makes one")
        }
    }
}

extension ConfigurationForm where Value == [String] {
    /// Whether the rooms exist is checked when all are known.
    static var accountRooms: Self { texts(of: "rooms", check: ConfigurationChecks.roomName) }

    static var subprotocols: Self {
        texts(of: "names") {
            ASCII.isToken($0) ? nil : "\"\($0)\" is not a subprotocol's name (a token without spaces)"
        }
    }

    /// Ids of people at a backend.
    static var tokenOwners: Self {
        texts(of: "ids") { ConfigurationChecks.oneLine($0) ?? ($0.isEmpty ? "nobody has an empty id" : nil) }
    }

    /// Fingerprints as `chatbridge cert fingerprint` prints them, or with colons and in capitals, as openssl does.
    static var certificateFingerprints: Self {
        list(of: "fingerprints") { text throws(AddressError) in
            let digits = text.utf8.filter { $0 != UInt8(ascii: ":") }.map { 0x41...0x46 ~= $0 ? $0 | 0x20 : $0 }
            guard digits.count == 64, digits.allSatisfy({ 0x30...0x39 ~= $0 || 0x61...0x66 ~= $0 }) else {
                throw AddressError(
                    "\"\(text)\" is not the 64 hexadecimal digits of a SHA-256, as \"chatbridge cert fingerprint\" "
                        + "prints")
            }
            return String(decoding: digits, as: UTF8.self)
        } print: {
            $0
        }
    }
}

extension ConfigurationForm where Value == [[UInt8]] {
    /// Pins as `chatbridge cert fingerprint` prints them; curl's `sha256//` in front is taken too.
    static var pins: Self {
        list(of: "pins") { text throws(AddressError) in
            let base64 = text.hasPrefix("sha256//") ? String(text.dropFirst(8)) : text
            guard let digest = Base64.decode(base64), digest.count == 32 else {
                throw AddressError(
                    "\"\(text)\" is not the base64 of a SHA-256 digest, as \"chatbridge cert fingerprint\" prints")
            }
            return digest
        } print: {
            Base64.encode($0)
        }
    }
}

extension ConfigurationForm where Value == [UpstreamHeader] {
    static var headers: Self {
        map(of: "header fields", dash: true, key: \.name) { name, text throws(MapError) in
            guard ASCII.isToken(name) else { throw .key("\"\(name)\" is not a header field's name") }
            let lowered = name.lowercased()
            if ConfigurationChecks.handshakeHeaders.contains(lowered) || lowered.hasPrefix("sec-websocket-") {
                throw .key("\"\(name)\" belongs to the WebSocket handshake and cannot be set")
            }
            if lowered == "user-agent" { throw .key("\"\(name)\" is set with the key user_agent") }
            if let complaint = ConfigurationChecks.headerValue(text) { throw .value(complaint) }
            return UpstreamHeader(name, Secret(text))
        } print: { _ in
            Secret.blank
        }
    }
}

/// Checks of texts: each returns a complaint, or nil.
package enum ConfigurationChecks {
    /// Fields that the WebSocket handshake sets itself. Source: RFC 6455 §4.1; RFC 9110 §7.2, §7.6.1.
    static let handshakeHeaders: Set<String> = [
        "host", "upgrade", "connection", "content-length", "transfer-encoding", "te", "trailer", "expect",
    ]

    /// Longest channel name, in bytes; a line's other words need the rest. Source: modern.ircdocs.horse, CHANNELLEN.
    static let maxChannelBytes = 64
    /// Longest server name, in bytes. Source: RFC 2812 §2.3.1, "Servername are limited to 63 characters".
    static let maxServerNameBytes = 63

    /// Longest name of an account, in bytes: it is a nick too, by the default of identity.nicks.max_length.
    static let maxAccountBytes = 30

    private static func isAlphanumeric(_ byte: UInt8) -> Bool { ASCII.isLetter(byte) || ASCII.isDigit(byte) }

    private static func hasControl(_ text: String) -> Bool { text.utf8.contains { $0 < 0x20 || $0 == 0x7F } }

    @Sendable static func oneLine(_ text: String) -> String? {
        hasControl(text) ? "contains a line break or another control character" : nil
    }

    @Sendable static func headerValue(_ text: String) -> String? {
        if hasControl(text) { return "a header's value contains a line break or another control character" }
        if text.first == " " || text.last == " " { return "a header's value begins or ends with a space" }
        return nil
    }

    @Sendable static func instanceID(_ text: String) -> String? {
        text.utf8.count <= 64 && text.utf8.allSatisfy { isAlphanumeric($0) || $0 == 0x2D || $0 == 0x5F || $0 == 0x2E }
            ? nil : "instance_id is at most 64 of a-z A-Z 0-9 . _ -"
    }

    @Sendable static func serverName(_ text: String) -> String? {
        isServerName(text)
            ? nil
            : "a server name is at most \(maxServerNameBytes) of a-z A-Z 0-9 . - with a dot in it, such as irc.example.org"
    }

    static func isServerName(_ text: String) -> Bool {
        // A dot distinguishes a server from a person in an IRC source.
        text.utf8.count <= maxServerNameBytes && text.contains(".") && text.first != "." && text.last != "."
            && text.utf8.allSatisfy { isAlphanumeric($0) || $0 == 0x2E || $0 == 0x2D }
    }

    @Sendable static func tlsName(_ text: String) -> String? {
        let isName = text.utf8.count <= 253 && text.utf8.allSatisfy { isAlphanumeric($0) || "-._:".utf8.contains($0) }
        return isName ? nil : "\"\(text)\" is not a host name or an address"
    }

    @Sendable static func network(_ text: String) -> String? {
        !text.isEmpty && text.utf8.count <= 63 && text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }
            ? nil : "a network name is 1 to 63 bytes without spaces"
    }

    /// Clients fetch it, so only over the web; and it stands in one token of 005. Source: IRCv3 network-icon.
    @Sendable static func icon(_ text: String) -> String? {
        guard !text.isEmpty else { return nil }
        return (text.hasPrefix("https://") || text.hasPrefix("http://")) && text.utf8.count <= 300
            && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
            ? nil : "an icon is an https:// or http:// address of at most 300 ASCII characters"
    }

    @Sendable static func backendName(_ text: String) -> String? {
        isRoomName(text) ? nil : "a backend's name is 1 to \(maxChannelBytes - 1) of a-z 0-9 _ -"
    }

    /// The value of `{room}` must not climb out of a path, however often servers decode it. Source: RFC 3986 §5.2.4.
    @Sendable package static func upstreamRoom(_ text: String) -> String? {
        if let complaint = oneLine(text) { return complaint }
        return HTTPURL.climbs("/" + HTTPURL.percentEncoded(text)) ? "a room upstream cannot be called \"\(text)\"" : nil
    }

    private static func isRoomName(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count < maxChannelBytes
            && text.utf8.allSatisfy {
                $0 >= 0x61 && $0 <= 0x7A || $0 >= 0x30 && $0 <= 0x39 || $0 == 0x5F || $0 == 0x2D
            }
    }

    @Sendable static func roomName(_ text: String) -> String? {
        isRoomName(text) || text == RoomConfiguration.templateName
            ? nil : "a room's name is 1 to \(maxChannelBytes - 1) of a-z 0-9 _ -"
    }

    /// An account is also a nick; the absence of `@` distinguishes it from people of a backend, `id@backend`.
    @Sendable static func accountName(_ text: String) -> String? {
        IRCNames.isValidNickname(text, maxBytes: maxAccountBytes, utf8: true)
            ? nil
            : "an account's name is 1 to \(maxAccountBytes) bytes that a nick may have: no spaces, no @ ! * , : . #"
    }

    @Sendable static func relayNick(_ text: String) -> String? {
        IRCNames.isValidNickname(text, maxBytes: maxAccountBytes, utf8: true)
            ? nil : "relay_nick is a nick of 1 to \(maxAccountBytes) bytes, such as \"relay\""
    }

    @Sendable static func channel(_ text: String) -> String? {
        if text.isEmpty { return nil }
        guard text.utf8.first == UInt8(ascii: "#") else { return "a channel begins with \"#\"" }
        let bad = text.utf8.contains { $0 <= 0x20 || $0 == 0x7F || $0 == UInt8(ascii: ",") }
        return text.utf8.count >= 2 && text.utf8.count <= maxChannelBytes && !bad
            ? nil : "a channel is \"#\" and 1 to \(maxChannelBytes - 1) bytes without spaces, commas and controls"
    }

    @Sendable static func nickSuffix(_ text: String) -> String? {
        text.utf8.count <= 10 && !text.utf8.contains(where: isForbiddenInNick)
            ? nil : "a suffix is at most 10 bytes without spaces, controls and , * ? ! @ # & : $ ."
    }

    @Sendable static func nickReplacement(_ text: String) -> String? {
        text.utf8.count == 1 && !text.utf8.contains(where: isForbiddenInNick)
            ? nil : "exactly one ASCII character that a nick may have, such as \"-\" or \"_\""
    }

    @Sendable private static func isForbiddenInNick(_ byte: UInt8) -> Bool {
        byte <= 0x20 || byte == 0x7F || ",*?!@#&:$.".utf8.contains(byte)
    }
}

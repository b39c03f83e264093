import ChatModel
import Digests
import HTTPProtocol
import JSONText
import WireBytes

// What the forms have in common in reading hooks: proofs and bodies.

/// Why a hook's request is not read.
enum HookFailure: Error {
    case unproven(String)
    case malformed(String)
}

extension HookReading {
    init(_ read: () throws(HookFailure) -> HookReading) {
        do throws(HookFailure) {
            self = try read()
        } catch {
            switch error {
            case .unproven(let reason): self = .unproven(reason: reason)
            case .malformed(let reason): self = .malformed(reason: reason)
            }
        }
    }
}

extension JSONLimits {
    /// A hook's body is at most 1 MiB, and no tool nests as deep.
    static let hook = JSONLimits(maxBytes: 1 << 20, maxDepth: 64)
}

// MARK: - Proofs

extension MirrorSecret {
    /// Checks a token that is the secret itself.
    func prove(token: String?) throws(HookFailure) {
        guard let token, !bytes.isEmpty else { throw .unproven("it has no token") }
        // Of the same length, whatever was sent.
        guard constantTimeEqual(SHA256.hash(Array(token.utf8)), SHA256.hash(bytes)) else {
            throw .unproven("its token is another")
        }
    }

    /// The HMAC-SHA256 of a message in hexadecimal digits.
    func signature(_ message: [UInt8]) -> String {
        HMACSHA256.authenticate(message, key: bytes).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// Checks a signature over the version, the time and the body, separated by colons: `v0=…` or `v1=…`.
    func prove(_ hook: HookRequest, version: String, time: String, signature: String) throws(HookFailure) {
        guard !bytes.isEmpty else { throw .unproven("there is no secret to check it by") }
        guard let stamp = hook.headers.first(time), let given = hook.headers.first(signature) else {
            throw .unproven("it has no signature")
        }
        let message = Array("\(version):\(stamp):".utf8) + hook.body
        guard constantTimeEqual(Array(given.utf8), Array("\(version)=\(self.signature(message))".utf8)) else {
            throw .unproven("its signature is another")
        }
        guard let seconds = ASCII.decimal(Array(stamp.utf8), maxDigits: 12),
            (hook.at.milliseconds / 1000 - Int64(seconds)).magnitude <= HookRequest.maxAgeSeconds
        else { throw .unproven("its time is not within \(HookRequest.maxAgeSeconds / 60) minutes of ours") }
    }
}

extension HookRequest {
    /// A signed request is as old at the most, or as far ahead: later it may be a copy.
    ///
    /// Source: https://docs.slack.dev/authentication/verifying-requests-from-slack
    static let maxAgeSeconds = 300

    /// The token of `Authorization: Bearer`. Source: RFC 6750 §2.1.
    var bearerToken: String? { credentials("Bearer") }

    func credentials(_ scheme: String) -> String? {
        guard let value = headers.first("Authorization"), let blank = value.firstIndex(of: " "),
            ASCII.equalsIgnoringCase(value[..<blank], scheme)
        else { return nil }
        return String(value[blank...].drop { $0 == " " })
    }

    // MARK: - Bodies

    func document() throws(HookFailure) -> JSONValue {
        do throws(JSONError) {
            return try JSONValue(parsing: body, limits: .hook)
        } catch {
            throw .malformed("the body is not JSON: \(error)")
        }
    }

    func object() throws(HookFailure) -> JSONValue {
        let document = try document()
        guard document.object != nil else { throw .malformed("the body is no object") }
        return document
    }

    var isForm: Bool {
        headers.first("Content-Type").flatMap { HTTPParameterizedValue($0) }.map {
            ASCII.equalsIgnoringCase($0.value, "application/x-www-form-urlencoded")
        } ?? false
    }

    /// The fields of a form as an object of texts; a name that occurs again counts the last time.
    ///
    /// Source: https://url.spec.whatwg.org/#urlencoded-parsing
    func form() throws(HookFailure) -> JSONValue {
        var fields: [JSONValue.Member] = []
        for pair in body.split(separator: UInt8(ascii: "&")) {
            let sides = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            let texts = sides.map { side in
                String(validating: side.map { $0 == UInt8(ascii: "+") ? 0x20 : $0 }, as: UTF8.self)
                    .flatMap(HTTPURL.percentDecoded)
            }
            guard let name = texts.first ?? nil, let value = texts.count > 1 ? texts[1] : "" else {
                throw .malformed("the body is no form in UTF-8")
            }
            fields.append(JSONValue.Member(name, .string(value)))
        }
        return .object(fields)
    }
}

// MARK: - Members

extension JSONValue {
    /// A text; nil where it is not there, or null.
    func text(_ key: String) throws(HookFailure) -> String? {
        guard let value = self[key], !value.isNull else { return nil }
        guard let text = value.string else { throw .malformed("\"\(key)\" is no text") }
        return text
    }

    func requiredText(_ key: String) throws(HookFailure) -> String {
        guard let text = try text(key) else { throw .malformed("\"\(key)\" is missing") }
        return text
    }

    /// An object; nil where it is not there, or null.
    func part(_ key: String) throws(HookFailure) -> JSONValue? {
        guard let value = self[key], !value.isNull else { return nil }
        guard value.object != nil else { throw .malformed("\"\(key)\" is no object") }
        return value
    }

    func requiredPart(_ key: String) throws(HookFailure) -> JSONValue {
        guard let part = try part(key) else { throw .malformed("\"\(key)\" is missing") }
        return part
    }

    /// The elements of an array; none where it is not there, or null.
    func list(_ key: String) throws(HookFailure) -> [JSONValue] {
        guard let value = self[key], !value.isNull else { return [] }
        guard let list = value.array else { throw .malformed("\"\(key)\" is no array") }
        return list
    }

    /// Files in the list called `key`, by the names that the tool has for their members; those without a web address
    /// are left out.
    func files(_ key: String, url: [String], name: String, type: String) throws(HookFailure) -> [MirrorFile] {
        var files: [MirrorFile] = []
        for file in try list(key) {
            guard let address = url.lazy.compactMap({ file[$0]?.string }).first, MarkupReader.isAddress(address) else {
                continue
            }
            files.append(
                MirrorFile(
                    url: address, name: file[name]?.string, type: file[type]?.string, size: file["size"]?.integer))
        }
        return files
    }
}

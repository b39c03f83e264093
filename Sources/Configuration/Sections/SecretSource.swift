/// Where a secret is. Files are read when the secret is needed, so that a new one is used at the next attempt.
package enum SecretSource: Hashable, Sendable {
    case text(Secret)
    case file(String)
    /// A systemd credential and the path under which it is found.
    case credential(String, path: String)

    /// The secret as it is now.
    ///
    /// - Throws: a sentence that names the place, never the contents.
    package func read(_ environment: ConfigurationEnvironment) throws(InterpolationError) -> Secret {
        let path: String
        switch self {
        case .text(let secret): return secret
        case .file(let file): path = file
        case .credential(_, let file): path = file
        }
        let text = try FileText.read(path, environment: environment)
        if let complaint = Self.complaint(about: text) { throw InterpolationError(message: "\"\(path)\" \(complaint)") }
        return Secret(text)
    }

    /// Why `text` is not a secret that fits in a line; nil: it is one.
    package static func complaint(about text: String) -> String? {
        if text.isEmpty { return "is empty" }
        if text.first == " " || text.last == " " { return "begins or ends with a space" }
        if ConfigurationChecks.headerValue(text) != nil { return "has a line break or another control character" }
        return nil
    }
}

// MARK: - Forms

extension ConfigurationForm where Value == SecretSource? {
    static var secretText: Self {
        Self(expected: "a string", shape: .leaf) { node, value, reader in
            guard let text = reader.string(node) else { return }
            guard !text.isEmpty else {
                value = nil
                return
            }
            if let complaint = SecretSource.complaint(about: text) {
                reader.report(node.origin, "this secret \(complaint)")
            } else {
                value = .text(Secret(text))
            }
        } write: { source in
            if case .text(let secret) = source { .hiding(secret) } else { nil }
        }
    }

    /// A path. It is read now too, so that a wrong one is found before the first attempt.
    static var secretFile: Self {
        Self(expected: "a path", shape: .leaf) { node, value, reader in
            guard let path = reader.string(node), !path.isEmpty else { return }
            accept(.file(path), node, &value, &reader)
        } write: { source in
            if case .file(let path) = source { ConfigurationNode(.string(path)) } else { nil }
        }
    }

    static var secretCredential: Self {
        Self(expected: "the name of a credential", shape: .leaf) { node, value, reader in
            guard let name = reader.string(node), !name.isEmpty,
                let path = reader.needsSecrets ? reader.credentialPath(name, origin: node.origin) : ""
            else { return }
            accept(.credential(name, path: path), node, &value, &reader)
        } write: { source in
            if case .credential(let name, _) = source { ConfigurationNode(.string(name)) } else { nil }
        }
    }

    @Sendable private static func accept(
        _ source: SecretSource, _ node: ConfigurationNode, _ value: inout SecretSource?,
        _ reader: inout ConfigurationReader
    ) {
        do throws(InterpolationError) {
            if reader.needsSecrets { _ = try source.read(reader.environment) }
            value = source
        } catch {
            reader.report(node.origin, error.message)
        }
    }
}

import Transport

// What TLS needs of the configuration: files that exist, belong together and can be used.

extension UpstreamTLSConfiguration {
    /// What the WebSocket handshake is to find. Source: RFC 7301 §6 for the name.
    package static let applicationProtocol = "http/1.1"

    package func settings(_ source: (String) -> TLSSource = TLSSource.file) -> TLSClientSettings {
        var settings = TLSClientSettings()
        if !serverName.isEmpty { settings.serverName = serverName }
        if !authorities.isEmpty { settings.authorities = source(authorities) }
        if !clientCertificate.isEmpty, !clientKey.isEmpty {
            settings.identity = TLSIdentity(certificate: source(clientCertificate), key: source(clientKey))
        }
        settings.pins = Set(pins)
        settings.minimumVersion = minimumVersion
        settings.verifiesPeer = !isInsecure
        settings.protocols = [Self.applicationProtocol]
        return settings
    }
}

extension ListenerConfiguration {
    /// What a client hears that speaks plain text to this port.
    package static let plainTextAnswer =
        "ERROR :This port speaks TLS: turn TLS on in your client, or use the plain port\r\n"

    /// What a browser hears that speaks plain HTTP to this port.
    package static let plainHTTPAnswer =
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 33\r\n"
        + "Connection: close\r\n\r\nThis port speaks TLS: use wss://\n"

    /// Nil for listeners without TLS.
    ///
    /// - Parameter asksForCertificates: clients may have certificates by which accounts are known.
    package func tlsSettings(
        asksForCertificates: Bool = false, _ source: (String) -> TLSSource = TLSSource.file
    ) -> TLSServerSettings? {
        guard bind.isSecure else { return nil }
        var settings = TLSServerSettings(identity: TLSIdentity(certificate: source(certificate), key: source(key)))
        settings.minimumVersion = minimumTLS
        if asksForCertificates { settings.clientCertificates = .welcomed }
        if !clientAuthorities.isEmpty { settings.clientCertificates = .requested(source(clientAuthorities)) }
        settings.plainTextAnswer = bind.isWebSocket ? Self.plainHTTPAnswer : Self.plainTextAnswer
        return settings
    }
}

extension ConfigurationCompletion {
    // MARK: - Listeners

    mutating func checkTLS(_ listener: ListenerConfiguration, at path: String) {
        let files = [
            ("cert", listener.certificate), ("key", listener.key), ("client_ca", listener.clientAuthorities),
        ]
        guard listener.bind.isSecure else {
            for (key, file) in files where !file.isEmpty {
                reader.report(
                    origin("\(path).\(key)") ?? .builtIn,
                    "\(listener.bind.scheme.rawValue):// has no TLS, so no \(key); "
                        + "write bind = \"\(listener.bind.scheme.secured.rawValue)://\(listener.bind.endpoint)\"")
            }
            return
        }
        for (key, file) in files.prefix(2) where file.isEmpty {
            reader.report(
                origin("\(path).bind") ?? .builtIn,
                "\(listener.bind.scheme.rawValue):// needs a certificate, and \(key) is not set; \"chatbridge cert self-signed\" makes one"
            )
        }
        guard !listener.certificate.isEmpty, !listener.key.isEmpty else { return }
        guard let sources = sources(files, at: path), let settings = listener.tlsSettings({ sources[$0] ?? .file($0) })
        else { return }
        do throws(TLSSetupError) {
            try settings.check()
        } catch {
            report(error, files, at: path)
        }
    }

    // MARK: - Rooms

    /// - Parameters:
    ///   - called: who has these settings, for messages.
    ///   - inherited: the backend that the room has its settings from; nil: the defaults.
    mutating func checkTLS(
        _ room: RoomConfiguration, at path: String, called: String, inherited: RoomConfiguration?
    ) {
        guard let url = room.url else { return }
        guard url.isSecure else {
            // A room may repeat what the defaults say, as a printed configuration does.
            if let place = origin("\(path).tls"), room.tls != (inherited ?? configuration.roomDefaults).tls {
                reader.report(place, "\(called) has TLS settings, but its url begins with ws://")
            }
            return
        }
        let tls = room.tls
        // What a room does not say itself was written in the defaults.
        let places = ["\(path).tls", "backends.\(room.backend).tls"]
        let place = places.first { origin($0) != nil } ?? "room_defaults.tls"
        let files = [
            ("ca", tls.authorities), ("client_cert", tls.clientCertificate), ("client_key", tls.clientKey),
        ]
        if tls.clientCertificate.isEmpty != tls.clientKey.isEmpty {
            let (has, lacks) = tls.clientKey.isEmpty ? ("client_cert", "client_key") : ("client_key", "client_cert")
            reader.report(origin("\(place).\(has)") ?? .builtIn, "\(has) is set and \(lacks) is not")
            return
        }
        guard let sources = sources(files, at: place) else { return }
        do throws(TLSSetupError) {
            try tls.settings({ sources[$0] ?? .file($0) }).check()
        } catch {
            report(error, files, at: place)
        }
    }

    // MARK: - Files

    /// The contents of the files that are named, by path; nil after reporting those that cannot be read.
    private mutating func sources(_ files: [(key: String, file: String)], at path: String) -> [String: TLSSource]? {
        var sources: [String: TLSSource] = [:]
        var isComplete = true
        for (key, file) in files where !file.isEmpty {
            switch reader.surroundings.readFile(file) {
            case .success(let bytes): sources[file] = .pem(bytes, name: file)
            case .failure(let problem):
                isComplete = false
                let reason =
                    switch problem {
                    case .notFound: "there is no file \"\(file)\""
                    case .unreadable(let reason): "cannot read \"\(file)\": \(reason)"
                    }
                reportOnce(origin("\(path).\(key)") ?? .builtIn, reason)
            }
        }
        return isComplete ? sources : nil
    }

    private mutating func report(_ error: TLSSetupError, _ files: [(key: String, file: String)], at path: String) {
        let culprit: String? =
            switch error {
            case .unreadable(let file, _), .tooLarge(let file, _), .noCertificate(let file), .noKey(let file),
                .keyHasPassphrase(let file), .refused(let file, _):
                file
            case .keyDoesNotMatch(let key, _): key
            }
        let key = files.first { $0.file == culprit }?.key ?? files.first { !$0.file.isEmpty }?.key ?? ""
        reportOnce(origin("\(path).\(key)") ?? origin(path) ?? .builtIn, error.description)
    }

    /// Rooms share what `[room_defaults]` says, and its faults.
    private mutating func reportOnce(_ origin: ConfigurationOrigin, _ message: String) {
        let problem = ConfigurationProblem(origin: origin, message: message)
        if !reader.problems.contains(problem) { reader.report(origin, message) }
    }
}

import Transport

// TLS files must exist, belong together and be usable.

extension ConfigurationCompletion {
    // MARK: - Listeners

    mutating func checkTLS(_ listener: ListenerConfiguration, at path: String) {
        let bind = listener.bind
        let files = [("cert", listener.certificate), ("key", listener.key), ("client_ca", listener.clientAuthorities)]
        guard bind.isSecure else {
            return refuse(
                files, of: bind.scheme.rawValue, secured: "\(bind.scheme.secured.rawValue)://\(bind.endpoint)", at: path
            )
        }
        checkTLS(files, of: bind.scheme.rawValue, at: path) { listener.tlsSettings($0) }
    }

    mutating func checkTLS(_ http: HTTPConfiguration, at path: String) {
        let bind = http.bind
        let files = [("cert", http.certificate), ("key", http.key)]
        guard bind.isSecure else {
            return refuse(files, of: bind.scheme.rawValue, secured: "https://\(bind.endpoint)", at: path)
        }
        checkTLS(files, of: bind.scheme.rawValue, at: path) { http.tlsSettings($0) }
    }

    /// Files of a listener without TLS.
    private mutating func refuse(
        _ files: [(key: String, file: String)], of scheme: String, secured: String, at path: String
    ) {
        for (key, file) in files where !file.isEmpty {
            report(
                origin("\(path).\(key)") ?? .builtIn,
                "\(scheme):// has no TLS, so no \(key); write bind = \"\(secured)\"")
        }
    }

    /// - Parameter files: certificate and key first.
    private mutating func checkTLS(
        _ files: [(key: String, file: String)], of scheme: String, at path: String,
        settings: ((String) -> TLSSource) -> TLSServerSettings?
    ) {
        for (key, file) in files.prefix(2) where file.isEmpty {
            report(
                origin("\(path).bind") ?? .builtIn,
                "\(scheme):// needs a certificate, and \(key) is not set; \"chatbridge cert self-signed\" makes one")
        }
        guard !files.prefix(2).contains(where: \.file.isEmpty), let sources = sources(files, at: path),
            let settings = settings({ sources[$0] ?? .file($0) })
        else { return }
        do throws(TLSSetupError) {
            try settings.check()
        } catch {
            report(error, files, at: path)
        }
    }

    // MARK: - Rooms

    /// - Parameters:
    ///   - called: the room or backend, for messages.
    ///   - inherited: the backend that the room has its settings from; nil: the defaults.
    mutating func checkTLS(_ room: RoomConfiguration, at path: String, called: String, inherited: RoomConfiguration?) {
        guard let url = room.url else { return }
        guard url.isSecure else {
            // A room may repeat the defaults, as a printed configuration does.
            if let place = origin("\(path).tls"), room.tls != (inherited ?? configuration.roomDefaults).tls {
                report(place, "\(called) has TLS settings, but its url begins with ws://")
            }
            return
        }
        // Settings that the room does not have were written in the backend or the defaults.
        let places = ["\(path).tls", "backends.\(room.backend).tls"]
        checkTLS(room.tls, at: places.first { origin($0) != nil } ?? "room_defaults.tls")
    }

    /// - Parameter place: the path of the table.
    mutating func checkTLS(_ tls: UpstreamTLSConfiguration, at place: String) {
        let files = [("ca", tls.authorities), ("client_cert", tls.clientCertificate), ("client_key", tls.clientKey)]
        if tls.clientCertificate.isEmpty != tls.clientKey.isEmpty {
            let (has, lacks) = tls.clientKey.isEmpty ? ("client_cert", "client_key") : ("client_key", "client_cert")
            report(origin("\(place).\(has)") ?? .builtIn, "\(has) is set and \(lacks) is not")
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
            switch environment.readFile(file) {
            case .success(let bytes): sources[file] = .pem(bytes, name: file)
            case .failure(let problem):
                isComplete = false
                let reason =
                    switch problem {
                    case .notFound: "there is no file \"\(environment.wholePath(file))\""
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
}

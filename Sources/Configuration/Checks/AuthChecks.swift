import DescribedDialects
import Dialects

extension ConfigurationCompletion {
    /// - Parameters:
    ///   - path: of the room.
    ///   - auth: where its auth stands; nil: in the room.
    mutating func checkAuth(
        _ room: RoomConfiguration, at path: String, auth: String? = nil, whole: ConfigurationOrigin
    ) {
        let at = auth ?? "\(path).auth"
        let called = auth == nil ? "auth." : ""
        let place = origin(at) ?? whole
        let auth = room.auth
        let written = Set(AuthConfiguration.keys.values.joined()).filter { origin("\(at).\($0)") != nil }
        let useful = AuthConfiguration.keys[auth.type] ?? []
        for key in Set(written).sorted() where !useful.contains(key) && !isRefused("\(at).type") {
            guard let keyOrigin = origin("\(at).\(key)") else { continue }
            report(
                keyOrigin,
                auth.type == .none
                    ? "\(called)\(key) means nothing without a type: \(AuthConfiguration.typeNames)"
                    : "\(called)\(key) means nothing for type = \"\(auth.type.rawValue)\"")
        }
        switch auth.type {
        case .none: return
        case .login: checkLogin(room, at: path, auth: at, place: place)
        case .clientCertificate:
            if room.tls.clientCertificate.isEmpty, !isRefused("\(path).tls.client_cert") {
                report(place, "auth of type \"client-cert\" needs client_cert and client_key in tls")
            }
        case .bearer, .query, .header, .message:
            checkTokenFrame(room, auth.type == .message, origin("\(at).type") ?? place)
            if auth.token == nil, !isBroken(AuthConfiguration.tokenKeys, at) {
                report(place, "auth of type \"\(auth.type.rawValue)\" needs token, token_file or token_credential")
            }
        case .basic:
            if (auth.user ?? "").isEmpty, !isBroken(["user"], at) {
                report(place, "auth of type \"basic\" needs a user")
            }
            if auth.password == nil, !isBroken(AuthConfiguration.passwordKeys, at) {
                report(place, "auth of type \"basic\" needs password, password_file or password_credential")
            }
        }
        let field: String? =
            switch auth.type {
            case .bearer, .basic: "Authorization"
            case .header: auth.headerName ?? AuthConfiguration.defaultHeaderName
            case .login: auth.login.sendAs?.header
            case .none, .query, .message, .clientCertificate: nil
            }
        if let field, let double = room.headers.first(where: { $0.name.lowercased() == field.lowercased() }) {
            report(
                origin("\(path).headers.\(double.name)") ?? place,
                "\(double.name) is set in headers and by auth; keep one of them")
        }
    }

    /// A frame for the token that there is not, or that is never sent.
    private mutating func checkTokenFrame(
        _ room: RoomConfiguration, _ isWanted: Bool, _ place: ConfigurationOrigin
    ) {
        // A dialect with wrong options has its own complaint.
        guard let dialect = try? configuration.dialect(of: room) else { return }
        let isThere = dialect.traits.opening.contains(.authenticates)
        if isWanted, !isThere {
            report(place, "the dialect \(room.dialect) has no frame for a token; use bearer, query or header")
        } else if !isWanted, isThere, dialect is CustomDialect {
            report(
                place,
                "the dialect \(room.dialect) shows the token by a frame, encode.auth, which is only sent with auth of "
                    + "type \"message\", or \"login\" that is sent so; set that type, or remove encode.auth from the description"
            )
        }
    }

    /// - Parameter at: where its auth stands.
    mutating func checkLogin(_ room: RoomConfiguration, at path: String, auth at: String, place: ConfigurationOrigin) {
        let auth = room.auth
        // A dialect with wrong options has its own complaint.
        let dialect = try? configuration.dialect(of: room)
        if auth.login.url == nil, isBroken(["login_url"], at) { return }
        // Name and password may stand in the backend itself.
        let backend = backend(of: room, at: path)
        let hasUser = !(auth.user ?? "").isEmpty || backend?.user.isEmpty == false
        let hasPassword = auth.password != nil || backend?.password != nil
        if auth.login.url == nil {
            if let dialect, dialect.calls?.canLogIn != true {
                report(
                    place, "the dialect \(room.dialect) does not know how to log in; login_url and login_body say how")
            } else {
                if !hasUser, !isBroken(["user"], at) {
                    report(place, "auth of type \"login\" needs a user")
                }
                if !hasPassword, !isBroken(AuthConfiguration.passwordKeys, at) {
                    report(place, "auth of type \"login\" needs password, password_file or password_credential")
                }
            }
            for key in LoginConfiguration.keys.prefix(8) where key != "login_url" {
                if let origin = origin("\(at).\(key)") {
                    report(origin, "auth.\(key) means nothing without login_url")
                }
            }
        } else if (auth.login.body ?? []).isEmpty, !isBroken(["login_body"], at) {
            report(place, "login_url needs a login_body")
        }
        for (key, text) in [("login_url", auth.login.url), ("refresh_url", auth.login.refreshURL)] {
            guard let text, text.hasPrefix("http://"), room.url?.isSecure == true else { continue }
            report(
                origin("\(at).\(key)") ?? place,
                "\(key) is plain http:// while the room's url is encrypted; what it carries could be read")
        }
        if auth.login.refreshURL != nil, (auth.login.refreshBody ?? []).isEmpty, !isBroken(["refresh_body"], at) {
            report(place, "refresh_url needs a refresh_body")
        }
        if let shown = auth.login.sendAs?.place {
            checkTokenFrame(room, shown == .message, origin("\(at).send_as") ?? place)
        }
        if auth.login.sendAs?.place == .header, let name = auth.login.sendAs?.name,
            let complaint = ConfigurationChecks.authHeader(name)
        {
            report(origin("\(at).send_as.name") ?? place, complaint)
        }
    }
}

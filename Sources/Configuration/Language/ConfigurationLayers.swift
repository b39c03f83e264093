import BridgeTypes

/// Lays the environment and the flags over the tree of a file.
///
/// `CHATBRIDGE__LIMITS__MULTILINE__MAX_LINES` finds its key by the schema's shapes; a listener is named by its index
/// (`CHATBRIDGE__LISTENERS__0__BIND`), a room by its name (`CHATBRIDGE__ROOMS__LOBBY__URL`), which makes the room if there
/// is none. Lists are separated by commas; lists and tables may also be written as TOML.
struct ConfigurationLayers {
    /// Begins the name of a variable that sets a key.
    static let prefix = "CHATBRIDGE__"

    private(set) var tree: ConfigurationNode
    private(set) var problems: [ConfigurationProblem] = []

    init(file tree: ConfigurationNode) { self.tree = tree }

    private mutating func report(_ origin: ConfigurationOrigin, _ message: String) {
        problems.append(ConfigurationProblem(origin: origin, message: message))
    }

    // MARK: - Variables with a path

    mutating func layEnvironment(_ variables: [String: String]) {
        let named = variables.filter { $0.key.hasPrefix(Self.prefix) }.map { name, value in
            (name: name, path: Self.segments(name.dropFirst(Self.prefix.count)), value: value)
        }
        // Whole tables before their parts, and index 9 before index 10.
        let ordered = named.sorted { a, b in
            for (x, y) in zip(a.path, b.path) where x != y {
                if let i = Int(x), let j = Int(y) { return i < j }
                return x < y
            }
            return (a.path.count, a.name) < (b.path.count, b.name)
        }
        for variable in ordered {
            let origin = ConfigurationOrigin.environment(variable.name)
            guard !variable.path.contains("") else {
                report(origin, "is not of the form CHATBRIDGE__SECTION__KEY")
                continue
            }
            if let sentence = PlannedKeys.sentence(variable.path.map { $0.lowercased() }) {
                report(origin, sentence)
                continue
            }
            if let message = Self.insert(
                variable.value, at: variable.path[...], shape: ConfigurationSchema.root.shape, origin: origin,
                into: &tree)
            {
                report(origin, message)
            }
        }
    }

    private static func segments(_ text: Substring) -> [String] {
        var result: [String] = []
        var rest = text
        while let mark = rest.firstRange(of: "__") {
            result.append(String(rest[..<mark.lowerBound]))
            rest = rest[mark.upperBound...]
        }
        return result + [String(rest)]
    }

    /// Inserts a variable's value at the path in its name. Returns a complaint about the name or about the value's
    /// TOML.
    private static func insert(
        _ value: String, at path: ArraySlice<String>, shape: ConfigurationShape, origin: ConfigurationOrigin,
        into node: inout ConfigurationNode
    ) -> String? {
        guard let segment = path.first else {
            switch parsed(value, shape: shape, origin: origin) {
            case .success(let parsed): node = parsed
            case .failure(let error): return error.message
            }
            return nil
        }
        let rest = path.dropFirst()
        let key = segment.lowercased()
        switch shape {
        case .leaf, .list:
            return "there is nothing below this key"
        case .table(let keys):
            // A table that the file wrote as something else is reported when the tree is read.
            guard case .table = node.content else { return nil }
            guard let inner = keys.first(where: { $0.key == key })?.shape else {
                return "unknown key \"\(key)\"\(NearestName.hint(for: key, among: keys.map(\.key)))"
            }
            var child = node[key] ?? empty(inner, origin: origin)
            let problem = insert(value, at: rest, shape: inner, origin: origin, into: &child)
            if problem == nil { node.set(key, to: child) }
            return problem
        case .map(let dash):
            guard rest.isEmpty else { return "there is nothing below this key" }
            guard case .table = node.content else { return nil }
            let name = dash ? key.replacing("_", with: "-") : key
            node.set(name, to: ConfigurationNode(.string(value), origin: origin))
            return nil
        case .named(let keys):
            guard case .table(let entries) = node.content else { return nil }
            let name = entries.first { Self.isSame($0.key, segment) }?.key ?? key
            var child = node[name] ?? ConfigurationNode(.table([]), origin: origin)
            let problem = insert(value, at: rest, shape: .table(keys), origin: origin, into: &child)
            if problem == nil { node.set(name, to: child) }
            return problem
        case .tables(let keys, let identity):
            guard case .array(var elements) = node.content else { return nil }
            let index: Int
            if let identity {
                let found = elements.firstIndex { element in
                    guard case .string(let name)? = element[identity]?.content else { return false }
                    return Self.isSame(name, segment)
                }
                if let found {
                    index = found
                } else {
                    index = elements.count
                    var element = ConfigurationNode(.table([]), origin: origin)
                    element.set(identity, to: ConfigurationNode(.string(key), origin: origin))
                    elements.append(element)
                }
            } else {
                guard let number = Int(segment), number >= 0, number <= elements.count else {
                    return "\"\(segment)\" is not an index from 0 to \(elements.count)"
                }
                index = number
                if index == elements.count { elements.append(ConfigurationNode(.table([]), origin: origin)) }
            }
            let problem = insert(value, at: rest, shape: .table(keys), origin: origin, into: &elements[index])
            if problem == nil { node = ConfigurationNode(.array(elements), origin: node.origin) }
            return problem
        }
    }

    /// Whether a variable's name may mean `name`: there are no dashes and no lower case in it.
    private static func isSame(_ name: String, _ segment: String) -> Bool {
        name.uppercased().replacing("-", with: "_") == segment.uppercased().replacing("-", with: "_")
    }

    private static func empty(_ shape: ConfigurationShape, origin: ConfigurationOrigin) -> ConfigurationNode {
        switch shape {
        case .tables: ConfigurationNode(.array([]), origin: origin)
        default: ConfigurationNode(.table([]), origin: origin)
        }
    }

    /// The value of a variable: text for a scalar, text or TOML for a list, TOML for tables.
    private static func parsed(
        _ value: String, shape: ConfigurationShape, origin: ConfigurationOrigin
    ) -> Result<ConfigurationNode, AddressError> {
        let text = ConfigurationNode(.string(value), origin: origin)
        let first = value.first { $0 != " " }
        switch shape {
        case .leaf: return .success(text)
        case .list where first != "[": return .success(text)
        case .table, .map, .named:
            guard first == "{" else { return .failure(AddressError("expected a TOML table, such as {a = 1}")) }
        case .list: break
        case .tables:
            guard first == "[" else { return .failure(AddressError("expected TOML, such as [{a = 1}]")) }
        }
        do {
            let document = try TOMLReader.parse(Array("value = \(value)".utf8), path: "")
            return .success((document["value"] ?? text).relocated(to: origin))
        } catch {
            return .failure(AddressError("is not TOML: \(error.message)"))
        }
    }

    // MARK: - The sidecar's variables

    /// The variables with which a container needs no file. They are short forms of keys.
    enum SidecarVariable: String, CaseIterable {
        case upstreamURL = "CHATBRIDGE_UPSTREAM_URL"
        case room = "CHATBRIDGE_ROOM"
        case dialect = "CHATBRIDGE_DIALECT"
        case token = "CHATBRIDGE_TOKEN"
        case tokenFile = "CHATBRIDGE_TOKEN_FILE"
        case listen = "CHATBRIDGE_LISTEN"
        case passwordFile = "CHATBRIDGE_PASSWORD_FILE"

        var origin: ConfigurationOrigin { .environment(rawValue) }
    }

    /// The room's name where `CHATBRIDGE_ROOM` does not say.
    static let defaultRoom = "lobby"

    mutating func laySidecar(_ environment: ConfigurationEnvironment) {
        reportNearMisses(environment.variables)
        // Compose files pass unset variables on as empty ones.
        func value(_ variable: SidecarVariable) -> String? {
            environment.variables[variable.rawValue].flatMap { $0.isEmpty ? nil : $0 }
        }
        func node(_ variable: SidecarVariable) -> ConfigurationNode? {
            value(variable).map { ConfigurationNode(.string($0), origin: variable.origin) }
        }

        if let listen = value(.listen) {
            setListeners(
                listen.split(separator: ",").map { String(Trimmed.text($0)) }, origin: SidecarVariable.listen.origin)
        }
        if let file = node(.passwordFile) { set("identity", "password_file", to: file) }

        guard let url = node(.upstreamURL) else {
            for variable in [SidecarVariable.room, .dialect, .token, .tokenFile] where value(variable) != nil {
                report(variable.origin, "needs \(SidecarVariable.upstreamURL.rawValue) beside it")
            }
            return
        }
        let name = node(.room) ?? ConfigurationNode(.string(Self.defaultRoom), origin: url.origin)
        var fields: [(String, ConfigurationNode)] = [("url", url)]
        if let dialect = node(.dialect) { fields.append(("dialect", dialect)) }
        if let file = node(.tokenFile), node(.token) != nil {
            report(file.origin, "excludes \(SidecarVariable.token.rawValue); keep one of them")
        }
        let token = node(.token).map { ("token", $0) } ?? node(.tokenFile).map { ("token_file", $0) }
        updateRoom(name) { room in
            for (key, node) in fields { room.set(key, to: node) }
            if let (key, node) = token {
                var auth = ConfigurationNode(.table([]), origin: node.origin)
                auth.set("type", to: ConfigurationNode(.string("bearer"), origin: node.origin))
                auth.set(key, to: node)
                room.set("auth", to: auth)
            }
        }
    }

    /// Reports variables that are misspelt sidecar variables. ``UnknownVariable`` has the others.
    private mutating func reportNearMisses(_ variables: [String: String]) {
        let known = SidecarVariable.allCases.map(\.rawValue)
        for name in variables.keys.sorted()
        where name.hasPrefix("CHATBRIDGE_") && !name.hasPrefix(Self.prefix) && !known.contains(name) {
            let near = known.first { NearestName.editDistance(Array(name), Array($0)) <= 2 }
            if let near { report(.environment(name), "is not known (did you mean \"\(near)\"?)") }
        }
    }

    // MARK: - Flags

    mutating func layFlags(_ request: ConfigurationRequest) {
        if !request.listen.isEmpty { setListeners(request.listen, origin: .flag("--listen")) }
        if let directory = request.stateDirectory {
            set("server", "state_dir", to: ConfigurationNode(.string(directory), origin: .flag("--state-dir")))
        }
        if let level = request.logLevel {
            set("log", "level", to: ConfigurationNode(.string(level), origin: .flag("--log-level")))
        }
    }

    // MARK: - Places in the tree

    private mutating func set(_ section: String, _ key: String, to value: ConfigurationNode) {
        var table = tree[section] ?? ConfigurationNode(.table([]), origin: value.origin)
        guard case .table = table.content else { return }
        table.set(key, to: value)
        tree.set(section, to: table)
    }

    private mutating func setListeners(_ addresses: [String], origin: ConfigurationOrigin) {
        let elements = addresses.map { address in
            var element = ConfigurationNode(.table([]), origin: origin)
            element.set("bind", to: ConfigurationNode(.string(address), origin: origin))
            return element
        }
        tree.set("listeners", to: ConfigurationNode(.array(elements), origin: origin))
    }

    private mutating func updateRoom(_ name: ConfigurationNode, _ body: (inout ConfigurationNode) -> Void) {
        let rooms = tree["rooms"] ?? ConfigurationNode(.array([]), origin: name.origin)
        guard case .array(var elements) = rooms.content else { return }
        var index = elements.firstIndex { $0["name"]?.content == name.content }
        if index == nil {
            var element = ConfigurationNode(.table([]), origin: name.origin)
            element.set("name", to: name)
            elements.append(element)
            index = elements.count - 1
        }
        guard let index else { return }
        body(&elements[index])
        tree.set("rooms", to: ConfigurationNode(.array(elements), origin: rooms.origin))
    }
}

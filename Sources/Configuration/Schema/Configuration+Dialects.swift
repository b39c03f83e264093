import DescribedDialects
import Dialects
import HTTPProtocol
import JSONText

// Dialects of rooms, and the socket settings of described ones.

extension Configuration {
    /// The dialect called `name`, built in or described; nil when there is none.
    ///
    /// - Parameter base: of the addresses of files in a described dialect's frames.
    /// - Throws: a complaint about the options; a described dialect has none.
    package func dialect(
        named name: String, options: consuming DialectOptions = DialectOptions(), base: String? = nil
    ) throws(DialectOptionError) -> (any Dialect)? {
        guard let described = dialects.first(where: { $0.name == name }) else {
            return try DialectTable.dialect(named: name, options: options)
        }
        try options.finish()
        return CustomDialect(described.definition, name: name, base: base)
    }

    /// A room completed with its described dialect's socket settings where the room has none.
    ///
    /// - Parameter isWritten: whether a key of the room was written.
    package func described(_ room: RoomConfiguration, isWritten: (String) -> Bool) -> RoomConfiguration {
        guard let definition = dialects.first(where: { $0.name == room.dialect })?.definition else { return room }
        var room = room
        if room.url == nil, !isWritten("url"), let url = definition.url {
            let (address, param) = Self.withoutToken(url)
            room.url = try? UpstreamURL(parsing: address)
            if room.auth.type == .query, room.auth.param == nil { room.auth.param = param }
        }
        if !isWritten("subprotocol"), room.subprotocols.isEmpty { room.subprotocols = definition.subprotocols }
        for header in definition.headers {
            if header.value.contains("{token}") {
                // How the token travels; whether there is one is the room's business.
                guard room.auth.type == .header, room.auth.headerName == nil, room.auth.format == nil else { continue }
                room.auth.headerName = header.name
                room.auth.format = header.value
            } else if header.value.contains("{room}"), room.upstreamRoom.isEmpty {
                // A backend's; each of its rooms says its own.
                continue
            } else if !room.headers.contains(where: { $0.name.lowercased() == header.name.lowercased() }) {
                let value = header.value.replacing("{room}", with: room.upstreamRoom)
                room.headers.append(UpstreamHeader(header.name, Secret(value)))
            }
        }
        return room
    }

    /// The dialect of a room or of a backend's rooms, with their options; nil for a name that there is not.
    package func dialect(of room: RoomConfiguration) throws(DialectOptionError) -> (any Dialect)? {
        var members = room.options.json.object ?? []
        let base = room.effectiveHTTPBase?.baseText
        if DialectTable.row(named: room.dialect)?.takesBase == true, !members.contains(where: { $0.key == "base" }),
            let base
        {
            members.append(JSONValue.Member("base", .string(base)))
        }
        return try dialect(named: room.dialect, options: DialectOptions(.object(members)), base: base)
    }

    /// A URL without the query's field that is the token, and that field's name; `auth` sends the token.
    private static func withoutToken(_ url: String) -> (url: String, param: String?) {
        guard let mark = url.firstIndex(of: "?") else { return (url, nil) }
        var param: String?
        let fields = url[url.index(after: mark)...].split(separator: "&").filter { field in
            guard field.hasSuffix("={token}") else { return true }
            param = String(field.dropLast("={token}".count))
            return false
        }
        return (url[..<mark] + (fields.isEmpty ? "" : "?" + fields.joined(separator: "&")), param)
    }
}

extension HTTPURL {
    /// The URL without a slash at its end.
    fileprivate var baseText: String {
        let text = description
        return text.hasSuffix("/") ? String(text.dropLast()) : text
    }
}

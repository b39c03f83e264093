import HTTPProtocol
import WireBytes

/// Reads the file out of a multipart/form-data body.
///
/// Source: RFC 7578 §4; RFC 2046 §5.1.1.
enum StudioMultipart {
    struct Part: Equatable {
        var fileName: String
        var mime: String
        var content: Range<Int>
    }

    /// The first part called `name`; nil when there is none, or the body is malformed.
    static func part(_ name: String, in body: [UInt8], contentType: String) -> Part? {
        guard let type = HTTPParameterizedValue(contentType),
            ASCII.equalsIgnoringCase(type.value, "multipart/form-data"), let boundary = type.parameter("boundary"),
            !boundary.isEmpty, boundary.utf8.count <= HTTPMultipartWriter.maxBoundaryBytes
        else { return nil }
        let mark = Array("--\(boundary)".utf8)
        let between = Array("\r\n--\(boundary)".utf8)
        guard var position = find(mark, in: body, from: 0).map({ $0 + mark.count }) else { return nil }
        // Two dashes instead of a line end: the last boundary.
        while body[position...].starts(with: [0x0D, 0x0A]) {
            let start = position + 2
            guard let end = find(between, in: body, from: position) else { return nil }
            guard let blank = find([0x0D, 0x0A, 0x0D, 0x0A], in: body, from: position), blank + 4 <= end else {
                return nil
            }
            let fields = headers(body[start..<max(start, blank)])
            let disposition = fields.first("Content-Disposition").flatMap(HTTPParameterizedValue.init)
            if disposition?.parameter("name") == name {
                return Part(
                    fileName: disposition?.parameter("filename") ?? "file",
                    mime: fields.first("Content-Type") ?? "application/octet-stream", content: (blank + 4)..<end)
            }
            position = end + between.count
        }
        return nil
    }

    private static func headers(_ bytes: ArraySlice<UInt8>) -> HTTPHeaders {
        var fields = HTTPHeaders()
        for line in bytes.split(separator: 0x0A) {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
            let end = line.last == 0x0D ? line.index(before: line.endIndex) : line.endIndex
            guard colon < end else { continue }
            fields.append(
                name: String(decoding: line[..<colon], as: UTF8.self),
                value: String(decoding: ASCII.trimmingOWS(line[(colon + 1)..<end]), as: UTF8.self))
        }
        return fields
    }

    private static func find(_ sign: [UInt8], in bytes: [UInt8], from start: Int) -> Int? {
        guard let first = sign.first else { return nil }
        return bytes.withUnsafeBytes { raw in
            var index = start
            while index + sign.count <= raw.count {
                guard let next = raw[index...].firstIndex(of: first), next + sign.count <= raw.count else { return nil }
                if raw[next..<(next + sign.count)].elementsEqual(sign) { return next }
                index = next + 1
            }
            return nil
        }
    }
}

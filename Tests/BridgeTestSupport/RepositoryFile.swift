import Foundation

/// Files of the repository, for comparison with the program.
package enum RepositoryFile {
    package static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// - Parameter path: from the root.
    package static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    /// A configuration that is shipped as an example.
    package static func example(_ name: String) throws -> String { try text("config/\(name)") }
}

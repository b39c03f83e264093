import BridgeTypes

/// A variable whose name begins like those of this program, and which it does not know.
///
/// No error: the variables are other programs' too, as those of an image's build. A slip in a sidecar's variable and an unknown
/// key behind ``ConfigurationLayers/prefix`` are errors.
package struct UnknownVariable: Equatable, Sendable {
    package let name: String
    /// The variable that may be meant.
    package let nearest: String?

    /// For the operator. Without the value, which may be a secret.
    package var sentence: String {
        let hint = nearest.map { "did you mean \"\($0)\"?" } ?? "a key is \(ConfigurationLayers.prefix)SECTION__KEY"
        return "\(name) is not known and has no effect (\(hint))"
    }

    /// Those of the environment, by their names.
    ///
    /// - Parameter path: the file of the configuration, which may name variables of its own, as `${NAME}`.
    package static func all(in environment: ConfigurationEnvironment, path: String?) -> [UnknownVariable] {
        let variables = environment.variables
        let file = path.flatMap { try? environment.readFile($0).get() } ?? []
        let text = String(decoding: file, as: UTF8.self)
        let known = Set(ConfigurationLayers.SidecarVariable.allCases.map(\.rawValue))
        let services = kubernetesServices(variables)
        return variables.keys.filter { name in
            name.hasPrefix(stem) && !name.hasPrefix(ConfigurationLayers.prefix) && !known.contains(name)
                && !services.contains { isOf(service: $0, name) }
                && !["}", ":-"].contains { text.contains("${\(name)\($0)") }
        }.sorted().map { UnknownVariable(name: $0, nearest: nearest(to: $0)) }
    }

    private static let stem = "CHATBRIDGE_"

    // MARK: - Kubernetes

    /// Services of the namespace that are called chatbridge or chatbridge-…, by which each has `NAME_SERVICE_HOST`.
    ///
    /// Source: Kubernetes, "Accessing the Service", environment variables.
    private static func kubernetesServices(_ variables: [String: String]) -> [Substring] {
        variables.keys.filter { $0.hasPrefix(stem) && $0.hasSuffix("_SERVICE_HOST") }
            .map { $0.dropLast("_SERVICE_HOST".count) }
    }

    private static func isOf(service: Substring, _ name: String) -> Bool {
        guard name.hasPrefix(service) else { return false }
        let rest = name.dropFirst(service.count)
        return rest == "_PORT" || rest.hasPrefix("_PORT_") || rest.hasPrefix("_SERVICE_")
    }

    // MARK: - What may be meant

    /// The shortest that ends in the same steps, as a section was left out or an underscore is single; else the closest.
    private static func nearest(to name: String) -> String? {
        let typed = plain(name)
        let candidates =
            ConfigurationLayers.SidecarVariable.allCases.map(\.rawValue) + ConfigurationTopic.all.map(\.variable)
        let ending = candidates.filter { endings($0).contains(typed) }
        if let shortest = ending.min(by: { $0.utf8.count < $1.utf8.count }) { return shortest }
        let near = NearestName.suggestion(for: typed, among: candidates.map(plain))
        return candidates.first { plain($0) == near }
    }

    /// `CHATBRIDGE__LOG__LEVEL` as `LOG_LEVEL`.
    private static func plain(_ variable: String) -> String {
        variable.dropFirst(stem.count).split(separator: "_").joined(separator: "_")
    }

    /// `LOG_LEVEL` and `LEVEL`; of a short form all its words, as `UPSTREAM_URL` and `URL`.
    private static func endings(_ variable: String) -> [String] {
        let isKey = variable.hasPrefix(ConfigurationLayers.prefix)
        let steps = variable.dropFirst(stem.count).split(separator: isKey ? "__" : "_")
        return steps.indices.map { steps[$0...].joined(separator: "_").trimmingPrefix("_") }.map { String($0) }
    }
}

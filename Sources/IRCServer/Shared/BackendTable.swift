import BridgeTypes
import Upstream

/// The configured backends' accounts, in the order of the settings.
package struct BackendTable {
    package let all: [BackendAccount]
    private let byName: [String: BackendID]

    package init(_ settings: [BackendSettings], shared: UpstreamShared) {
        all = settings.enumerated().map { index, backend in
            BackendAccount(id: BackendID(index: index), settings: backend, shared: shared)
        }
        byName = Dictionary(all.map { ($0.settings.name, $0.id) }, uniquingKeysWith: { _, last in last })
    }

    package subscript(id: BackendID) -> BackendAccount? { all.indices.contains(id.index) ? all[id.index] : nil }

    package subscript(name: String) -> BackendAccount? { byName[name].flatMap { self[$0] } }
}

import Digests
import Transport

/// The random id of this installation: it seeds the stable upstream ids of IRC users, so that two bridges never share a
/// person and ids survive restarts.
enum InstanceIdentity {
    static let fileName = "instance-id"

    static func load(directory: String) -> PersistentValue<String> {
        .load(
            fileName, in: directory, followsLinks: true, parse: { $0.utf8.count >= 8 ? $0 : nil }, format: { $0 },
            generate: {
                var random = BufferedSystemRandom()
                return UUIDv4.make(using: &random)
            })
    }
}

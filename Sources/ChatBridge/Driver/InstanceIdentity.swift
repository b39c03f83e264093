import ChatModel
import Configuration
import Transport

/// The random id of this installation: it seeds the stable upstream ids of IRC users, so that two bridges never share a
/// person and ids survive restarts.
enum InstanceIdentity {
    static let fileName = "instance-id"

    /// The configured id, or that of the state directory.
    static func of(_ server: ServerConfiguration) -> PersistentValue<String> {
        server.instanceID.isEmpty ? load(directory: server.stateDirectory) : .stored(server.instanceID)
    }

    /// The id as the log has it. Of a random one the beginning: a reader of all of it can guess the ids of users.
    static func shown(_ server: ServerConfiguration, _ id: String) -> String {
        server.instanceID.isEmpty ? String(id.prefix(8)) : id
    }

    static func load(directory: String) -> PersistentValue<String> {
        .load(
            fileName, in: directory, followsLinks: true, parse: { $0.utf8.count >= 8 ? $0 : nil }, format: { $0 },
            generate: {
                var random = BufferedSystemRandom()
                return ChatID.random(using: &random).rawValue
            })
    }
}

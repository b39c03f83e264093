/// Name and version of this program.
package enum BuildInformation {
    package static let name = "chatbridge"
    package static let version = "0.1.0"
}

/// Why a bridge cannot be started, for the operator.
struct StartError: Error, CustomStringConvertible {
    let description: String
}

package standard

// Kind says what a parameter of a kind of the standard is in C.
type Kind struct {
	Small string // type of the value or of an element: int
	Large string // the same in the form with _c: MPI_Count
	Class Class
	// address is true if C passes an address whatever the direction.
	address bool
}

// Class says how a parameter passes from C to Go.
type Class int

// The classes.
const (
	Integer  Class = iota // any integer or enumeration, widened to 64 bits
	Real                  // double
	Handle                // a handle of MPI
	Tool                  // a handle of the tool interface MPI_T
	Fint                  // MPI_Fint: an INTEGER of Fortran
	Address               // void *
	String                // char *, or an array of such
	Function              // pointer to a function
	Status                // MPI_Status, MPI_F08_status
	Varargs               // ...
	Nothing               // void, as a result
)

// KindOf returns what a kind is in C.
func KindOf(kind string) (Kind, bool) {
	k, ok := kinds[kind]
	return k, ok
}

// kinds has what each kind is in C (MPI-5.0, A.3).
var kinds = map[string]Kind{
	"ACCESS_MODE":                 {"int", "int", Integer, false},
	"ARGUMENT_COUNT":              {"int", "int", Integer, false},
	"ARRAY_LENGTH":                {"int", "int", Integer, false},
	"ARRAY_LENGTH_NNI":            {"int", "int", Integer, false},
	"ARRAY_LENGTH_PI":             {"int", "int", Integer, false},
	"ASSERT":                      {"int", "int", Integer, false},
	"BIND_TYPE":                   {"int", "int", Integer, false},
	"CAT_INDEX":                   {"int", "int", Integer, false},
	"COLOR":                       {"int", "int", Integer, false},
	"COMBINER":                    {"int", "int", Integer, false},
	"COMM_COMPARISON":             {"int", "int", Integer, false},
	"COMM_SIZE":                   {"int", "int", Integer, false},
	"COMM_SIZE_PI":                {"int", "int", Integer, false},
	"COORDINATE":                  {"int", "int", Integer, false},
	"CVAR_INDEX":                  {"int", "int", Integer, false},
	"CVAR_INDEX_SPECIAL":          {"int", "int", Integer, false},
	"DEGREE":                      {"int", "int", Integer, false},
	"DIMENSION":                   {"int", "int", Integer, false},
	"DISTRIB_ENUM":                {"int", "int", Integer, false},
	"DTYPE_DISTRIBUTION":          {"int", "int", Integer, false},
	"ERROR_CLASS":                 {"int", "int", Integer, false},
	"ERROR_CODE":                  {"int", "int", Integer, false},
	"ERROR_CODE_SHOW_INTENT":      {"int", "int", Integer, false},
	"EVENT_INDEX":                 {"int", "int", Integer, false},
	"FILE_DESCRIPTOR":             {"int", "int", Integer, false},
	"GENERIC_DTYPE_INT":           {"int", "int", Integer, false},
	"GROUP_COMPARISON":            {"int", "int", Integer, false},
	"INDEX":                       {"int", "int", Integer, false},
	"INFO_VALUE_LENGTH":           {"int", "int", Integer, false},
	"KEY":                         {"int", "int", Integer, false},
	"KEYVAL":                      {"int", "int", Integer, false},
	"KEY_INDEX":                   {"int", "int", Integer, false},
	"LOCK_TYPE":                   {"int", "int", Integer, false},
	"LOGICAL":                     {"int", "int", Integer, false},
	"LOGICAL_OPTIONAL":            {"int", "int", Integer, false},
	"MATH":                        {"int", "int", Integer, false},
	"NUM_BYTES_SMALL":             {"int", "int", Integer, false},
	"NUM_DIMS":                    {"int", "int", Integer, false},
	"ORDER":                       {"int", "int", Integer, false},
	"PARTITION":                   {"int", "int", Integer, false},
	"PROCESS_GRID_SIZE":           {"int", "int", Integer, false},
	"PROFILE_LEVEL":               {"int", "int", Integer, false},
	"PVAR_CLASS":                  {"int", "int", Integer, false},
	"PVAR_INDEX":                  {"int", "int", Integer, false},
	"RANK":                        {"int", "int", Integer, false},
	"RANK_NNI":                    {"int", "int", Integer, false},
	"SOURCE_INDEX":                {"int", "int", Integer, false},
	"SPLIT_TYPE":                  {"int", "int", Integer, false},
	"STRING_LENGTH":               {"int", "int", Integer, false},
	"TAG":                         {"int", "int", Integer, false},
	"THREAD_LEVEL":                {"int", "int", Integer, false},
	"TOOLENUM_INDEX":              {"int", "int", Integer, false},
	"TOOLENUM_SIZE":               {"int", "int", Integer, false},
	"TOOLS_NUM_ELEM_SMALL":        {"int", "int", Integer, false},
	"TOOL_VAR_VALUE":              {"int", "int", Integer, false},
	"TOOL_VAR_VERBOSITY":          {"int", "int", Integer, false},
	"TOPOLOGY_TYPE":               {"int", "int", Integer, false},
	"TYPECLASS":                   {"int", "int", Integer, false},
	"TYPECLASS_SIZE":              {"int", "int", Integer, false},
	"UPDATE_MODE":                 {"int", "int", Integer, false},
	"UPDATE_NUMBER":               {"int", "int", Integer, false},
	"VARIABLE_SCOPE":              {"int", "int", Integer, false},
	"VERSION":                     {"int", "int", Integer, false},
	"WEIGHT":                      {"int", "int", Integer, false},
	"ALLOC_MEM_NUM_BYTES":         {"MPI_Aint", "MPI_Aint", Integer, false},
	"DISPLACEMENT":                {"MPI_Aint", "MPI_Aint", Integer, false},
	"DISPLACEMENT_NNI":            {"MPI_Aint", "MPI_Aint", Integer, false},
	"DISPOFFSET_SMALL":            {"MPI_Aint", "MPI_Aint", Integer, false},
	"LOCATION_SMALL":              {"MPI_Aint", "MPI_Aint", Integer, false},
	"RMA_DISPLACEMENT_NNI":        {"MPI_Aint", "MPI_Aint", Integer, false},
	"WINDOW_SIZE":                 {"MPI_Aint", "MPI_Aint", Integer, false},
	"WIN_ATTACH_SIZE":             {"MPI_Aint", "MPI_Aint", Integer, false},
	"DROPPED_COUNT":               {"MPI_Count", "MPI_Count", Integer, false},
	"GENERIC_DTYPE_COUNT":         {"MPI_Count", "MPI_Count", Integer, false},
	"NUM_BYTES":                   {"MPI_Count", "MPI_Count", Integer, false},
	"TOOLS_TICK_COUNT":            {"MPI_Count", "MPI_Count", Integer, false},
	"XFER_NUM_ELEM":               {"MPI_Count", "MPI_Count", Integer, false},
	"XFER_NUM_ELEM_NNI":           {"MPI_Count", "MPI_Count", Integer, false},
	"OFFSET":                      {"MPI_Offset", "MPI_Offset", Integer, false},
	"POLYDISPLACEMENT":            {"int", "MPI_Aint", Integer, false},
	"POLYDISPLACEMENT_AINT_COUNT": {"MPI_Aint", "MPI_Count", Integer, false},
	"POLYDISPLACEMENT_COUNT":      {"int", "MPI_Count", Integer, false},
	"POLYDISPOFFSET":              {"MPI_Aint", "MPI_Count", Integer, false},
	"POLYDTYPE_NUM_ELEM":          {"int", "MPI_Count", Integer, false},
	"POLYDTYPE_NUM_ELEM_NNI":      {"int", "MPI_Count", Integer, false},
	"POLYDTYPE_NUM_ELEM_PI":       {"int", "MPI_Count", Integer, false},
	"POLYDTYPE_PACK_SIZE":         {"MPI_Aint", "MPI_Count", Integer, false},
	"POLYDTYPE_STRIDE_BYTES":      {"MPI_Aint", "MPI_Count", Integer, false},
	"POLYLOCATION":                {"MPI_Aint", "MPI_Count", Integer, false},
	"POLYNUM_BYTES":               {"int", "MPI_Count", Integer, false},
	"POLYNUM_BYTES_NNI":           {"int", "MPI_Count", Integer, false},
	"POLYNUM_PARAM_VALUES":        {"int", "MPI_Count", Integer, false},
	"POLYRMA_DISPLACEMENT":        {"int", "MPI_Aint", Integer, false},
	"POLYXFER_NUM_ELEM":           {"int", "MPI_Count", Integer, false},
	"POLYXFER_NUM_ELEM_NNI":       {"int", "MPI_Count", Integer, false},
	"CALLBACK_SAFETY":             {"MPI_T_cb_safety", "MPI_T_cb_safety", Integer, false},
	"SOURCE_ORDERING":             {"MPI_T_source_order", "MPI_T_source_order", Integer, false},
	"TICK_RESOLUTION":             {"double", "double", Real, false},
	"WALL_TIME":                   {"double", "double", Real, false},
	"COMMUNICATOR":                {"MPI_Comm", "MPI_Comm", Handle, false},
	"DATATYPE":                    {"MPI_Datatype", "MPI_Datatype", Handle, false},
	"ERRHANDLER":                  {"MPI_Errhandler", "MPI_Errhandler", Handle, false},
	"FILE":                        {"MPI_File", "MPI_File", Handle, false},
	"GROUP":                       {"MPI_Group", "MPI_Group", Handle, false},
	"INFO":                        {"MPI_Info", "MPI_Info", Handle, false},
	"MESSAGE":                     {"MPI_Message", "MPI_Message", Handle, false},
	"OPERATION":                   {"MPI_Op", "MPI_Op", Handle, false},
	"REQUEST":                     {"MPI_Request", "MPI_Request", Handle, false},
	"SESSION":                     {"MPI_Session", "MPI_Session", Handle, false},
	"WINDOW":                      {"MPI_Win", "MPI_Win", Handle, false},
	"CVAR":                        {"MPI_T_cvar_handle", "MPI_T_cvar_handle", Tool, false},
	"EVENT_INSTANCE":              {"MPI_T_event_instance", "MPI_T_event_instance", Tool, false},
	"EVENT_REGISTRATION":          {"MPI_T_event_registration", "MPI_T_event_registration", Tool, false},
	"PVAR":                        {"MPI_T_pvar_handle", "MPI_T_pvar_handle", Tool, false},
	"PVAR_SESSION":                {"MPI_T_pvar_session", "MPI_T_pvar_session", Tool, false},
	"TOOLS_ENUM":                  {"MPI_T_enum", "MPI_T_enum", Tool, false},
	"F90_COMM":                    {"MPI_Fint", "MPI_Fint", Fint, false},
	"F90_DATATYPE":                {"MPI_Fint", "MPI_Fint", Fint, false},
	"F90_ERRHANDLER":              {"MPI_Fint", "MPI_Fint", Fint, false},
	"F90_FILE":                    {"MPI_Fint", "MPI_Fint", Fint, false},
	"F90_GROUP":                   {"MPI_Fint", "MPI_Fint", Fint, false},
	"F90_INFO":                    {"MPI_Fint", "MPI_Fint", Fint, false},
	"F90_MESSAGE":                 {"MPI_Fint", "MPI_Fint", Fint, false},
	"F90_OP":                      {"MPI_Fint", "MPI_Fint", Fint, false},
	"F90_REQUEST":                 {"MPI_Fint", "MPI_Fint", Fint, false},
	"F90_SESSION":                 {"MPI_Fint", "MPI_Fint", Fint, false},
	"F90_STATUS":                  {"MPI_Fint", "MPI_Fint", Fint, true},
	"F90_WIN":                     {"MPI_Fint", "MPI_Fint", Fint, false},
	"ATTRIBUTE_VAL":               {"void", "void", Address, true},
	"ATTRIBUTE_VAL_10":            {"void", "void", Address, true},
	"BUFFER":                      {"void", "void", Address, true},
	"C_BUFFER":                    {"void", "void", Address, true},
	"C_BUFFER2":                   {"void", "void", Address, true},
	"C_BUFFER3":                   {"void", "void", Address, true},
	"C_BUFFER4":                   {"void", "void", Address, true},
	"EXTRA_STATE":                 {"void", "void", Address, true},
	"EXTRA_STATE2":                {"void", "void", Address, true},
	"LOGICAL_VOID":                {"void", "void", Address, true},
	"TOOL_MPI_OBJ":                {"void", "void", Address, true},
	"STRING":                      {"char", "char", String, true},
	"STRING_ARRAY":                {"char", "char", String, true},
	"STRING_2DARRAY":              {"char", "char", String, true},
	"ARGUMENT_LIST":               {"char", "char", String, true},
	"FUNCTION":                    {"", "", Function, true},
	"POLYFUNCTION":                {"", "", Function, true},
	"EVENT_CB_FUNCTION":           {"MPI_T_event_cb_function", "MPI_T_event_cb_function", Function, true},
	"EVENT_DROP_CB_FUNCTION":      {"MPI_T_event_dropped_cb_function", "MPI_T_event_dropped_cb_function", Function, true},
	"EVENT_FREE_CB_FUNCTION":      {"MPI_T_event_free_cb_function", "MPI_T_event_free_cb_function", Function, true},
	"STATUS":                      {"MPI_Status", "MPI_Status", Status, true},
	"F08_STATUS":                  {"MPI_F08_status", "MPI_F08_status", Status, true},
	"VARARGS":                     {"...", "...", Varargs, false},
	"NOTHING":                     {"void", "void", Nothing, false},
}
